import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { labels, podName, validatorId } from '../../api/names.ts';
import type { Api } from '../../kube/api.ts';
import { isApiError, NotLeader } from '../../kube/errors.ts';
import { pods, statefulSets, volumeClaims } from '../../kube/kinds.ts';
import type { ClaimFacts, MemberFacts, RetainedClaim } from '../../plan/validator-set/facts.ts';
import type { Action } from '../../plan/validator-set/plan.ts';
import type { Replacement } from '../../plan/validator-set/rollout.ts';
import type { Installation } from '../../platform/installation.ts';
import type { Principals } from '../../platform/principals.ts';
import type { Members } from '../../platform/validators.ts';
import { RequeueError } from '../reconciler/requeue-error.ts';

/** With what acts are done. */
export interface Actor {
  readonly api: Api;
  readonly members: Members;
  readonly principals: Principals;
  readonly installation: Installation;
  readonly namespace: string;
  readonly setName: string;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

const MERGE = 'application/merge-patch+json';

async function resize({ api, namespace, signal }: Actor, claim: ClaimFacts, size: string): Promise<void> {
  const { name, uid } = claim;
  const body = { metadata: { uid }, spec: { resources: { requests: { storage: size } } } };
  await api.call({
    verb: 'patch',
    resource: volumeClaims,
    namespace,
    name,
    contentType: MERGE,
    body,
    signal,
  });
}

/** Deletes the object and leaves its pods, so that it can be made anew with another claim template. */
async function orphanPods({ api, namespace, setName, signal }: Actor, uid: string): Promise<void> {
  const body = { preconditions: { uid }, propagationPolicy: 'Orphan' };
  await ignoreGone(
    api.call({ verb: 'delete', resource: statefulSets, namespace, name: setName, body, signal }),
  );
}

/** Notes on a claim when its member left. */
async function annotateClaim(
  { api, namespace, signal }: Actor,
  { name, uid }: RetainedClaim,
  leftAtMs: number | undefined,
): Promise<void> {
  const value = leftAtMs === undefined ? null : new Date(leftAtMs).toISOString();
  const body = { metadata: { uid, annotations: { [labels.leftAt]: value } } };
  const where = { resource: volumeClaims, namespace, name, contentType: MERGE };
  await ignoreGone(api.call({ verb: 'patch', ...where, body, signal }));
}

/**
 * The key first: the note on the claim remembers both. The claim goes as it was looked at; one that was noted anew since
 * then stays. A wallet service that is away holds up nothing else, and both stay.
 */
async function deleteRetainedClaim(actor: Actor, claim: RetainedClaim): Promise<boolean> {
  const { api, principals, installation, namespace, setName, signal, log } = actor;
  const { name, uid, resourceVersion, ordinal } = claim;
  try {
    await principals.destroyKeys(installation, validatorId(podName(setName, ordinal)), signal);
  } catch (error) {
    if (error instanceof NotLeader || !isAppError(error)) throw error;
    log.warn({ err: error, subject: name }, 'The key of a member that left could not be destroyed yet');
    return false;
  }
  log.info({ subject: name }, 'Discards the volume of a member that left');
  const body = { preconditions: { uid, resourceVersion } };
  await ignoreGone(api.call({ verb: 'delete', resource: volumeClaims, namespace, name, body, signal }));
  return true;
}

async function ignoreGone(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    // gone already, or another object by now
    if (!isApiError(error, 'NotFound', 'Conflict')) throw error;
  }
}

/** Asks the API server to evict a pod: it asks the disruption budget. */
async function evict({ api, namespace, signal }: Actor, { member, uid }: Replacement): Promise<void> {
  const { name } = member;
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace },
    deleteOptions: { preconditions: { uid } },
  };
  const where = { resource: pods, namespace, name, subresource: 'eviction', retries: 0 };
  try {
    await ignoreGone(api.call({ verb: 'create', ...where, body, signal }));
  } catch (error) {
    if (!isApiError(error, 'TooManyRequests')) throw error;
    const message = `The disruption budget keeps ${name}: ${error.message}`;
    throw new RequeueError('RolloutBlocked', message, {
      retryAfterMs: error.retryAfterMs ?? 10_000,
      cause: error,
    });
  }
}

async function remove({ api, namespace, signal }: Actor, { member, uid }: Replacement): Promise<void> {
  const body = { preconditions: { uid } };
  await ignoreGone(api.call({ verb: 'delete', resource: pods, namespace, name: member.name, body, signal }));
}

function addressOf({ name, pod }: MemberFacts) {
  return { name, address: pod?.address ?? '' };
}

/**
 * Does one act.
 * @returns whether it was done; what can wait is tried again with the next look
 * @throws ApiError, NotLeader; Blocked when a disruption budget says no; what a member refuses
 */
export async function perform(actor: Actor, action: Action): Promise<boolean> {
  if (action.kind === 'discard') return deleteRetainedClaim(actor, action.claim);
  await performAtOnce(actor, action);
  return true;
}

async function performAtOnce(
  actor: Actor,
  action: Exclude<Action, { readonly kind: 'discard' }>,
): Promise<void> {
  const { members, installation, signal, log } = actor;
  switch (action.kind) {
    case 'resize':
      return resize(actor, action.claim, action.size);
    case 'recreate':
      return orphanPods(actor, action.uid);
    case 'drain':
      return void (await members.drain(installation, addressOf(action.member), signal));
    case 'undrain':
      return members.undrain(installation, addressOf(action.member), signal);
    case 'note':
      return annotateClaim(actor, action.claim, action.leftAtMs);
    case 'replace': {
      const { replacement } = action;
      log.info({ subject: replacement.member.name, proof: replacement.proof }, 'Replaces a member');
      return replacement.how === 'evict' ? evict(actor, replacement) : remove(actor, replacement);
    }
  }
}
