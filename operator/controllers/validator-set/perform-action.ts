import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Installation } from '../../api/installation.ts';
import { labels, podName, validatorId } from '../../api/names.ts';
import { RequeueError } from '../../api/requeue-error.ts';
import type { Api } from '../../kube/api.ts';
import { isApiError, NotLeader } from '../../kube/errors.ts';
import { pods, statefulSets, volumeClaims } from '../../kube/kinds.ts';
import type { ClaimFacts, MemberFacts, RetainedClaim } from '../../plan/validator-set/facts.ts';
import type { Action } from '../../plan/validator-set/plan.ts';
import type { Replacement } from '../../plan/validator-set/rollout.ts';
import type { Principals } from '../../platform/principals.ts';
import type { Members } from '../../platform/validators.ts';

/** Context of an action. */
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

/** Deletes the StatefulSet without its pods, so that it can be created again with another claim template. */
async function orphanPods({ api, namespace, setName, signal }: Actor, uid: string): Promise<void> {
  const body = { preconditions: { uid }, propagationPolicy: 'Orphan' };
  await ignoreGone(
    api.call({ verb: 'delete', resource: statefulSets, namespace, name: setName, body, signal }),
  );
}

/** Records on a claim when its member was removed; undefined deletes the record. */
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
 * Destroys the key of a removed member, then deletes its claim. The order matters: while the claim exists, its annotation
 * keeps both due. The resource version protects a claim that was changed meanwhile. If the wallet service is unavailable,
 * key and claim stay and nothing else is delayed.
 */
async function deleteRetainedClaim(actor: Actor, claim: RetainedClaim): Promise<boolean> {
  const { api, principals, installation, namespace, setName, signal, log } = actor;
  const { name, uid, resourceVersion, ordinal } = claim;
  try {
    await principals.destroyKeys(installation, validatorId(podName(setName, ordinal)), signal);
  } catch (error) {
    if (error instanceof NotLeader || !isAppError(error)) throw error;
    log.warn({ err: error, subject: name }, 'The key of a removed member could not be destroyed yet');
    return false;
  }
  log.info({ subject: name }, 'Deletes the volume of a removed member');
  const body = { preconditions: { uid, resourceVersion } };
  await ignoreGone(api.call({ verb: 'delete', resource: volumeClaims, namespace, name, body, signal }));
  return true;
}

async function ignoreGone(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    // already deleted, or replaced by another object of that name
    if (!isApiError(error, 'NotFound', 'Conflict')) throw error;
  }
}

/** Evicts a pod, so that the API server checks the disruption budget. */
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
    const message = `The disruption budget does not allow the eviction of ${name}: ${error.message}`;
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
 * Carries out one action.
 * @returns whether it was done; an action that can wait is repeated by the next reconcile
 * @throws ApiError, NotLeader; RequeueError when a disruption budget refuses; the refusal of a member
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
