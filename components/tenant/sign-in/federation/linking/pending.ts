import { randomUUIDv7 } from 'node:crypto';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../../database/schema.ts';
import { refusal } from '../../../errors.ts';
import { lockAccount } from '../../../people/accounts/store.ts';
import { findMeans } from '../../../people/means/store.ts';
import type { Origin } from '../../../requests/origin.ts';
import type { Living } from '../../../tokens/one-time/one-time.ts';
import { type IssuedTokens, issueSession, type Session } from '../../../tokens/sessions/session.ts';
import type { GateDeps } from '../../challenge/gate.ts';
import { PROOF_METHODS, type ProofMethod, type ProofWays } from '../../challenge/prove.ts';
import { type OrganizationDeps, openLinkedMembership } from '../organization/sign-in.ts';
import { recordLink } from '../record.ts';
import { open, type SocialDeps } from '../social/sign-in.ts';
import type { PendingLink } from '../state.ts';
import { findLink, insertLink } from '../store.ts';

type Tx = Transactor<TenantDatabase>;

export interface PendingLinkDeps extends SocialDeps, GateDeps, OrganizationDeps {
  /** Every way to prove to be the owner of an account; read when a request comes. */
  readonly ways: ProofWays;
}

interface Initiation {
  readonly linkPendingToken: string;
  readonly preferredMethod: ProofMethod | undefined;
  readonly origin: Origin;
}

/**
 * Chooses how the owner of the account proves it: by a strong method alone (specification document 1, section 4).
 * @throws INVALID_LINK_TOKEN, NoMethodAvailable
 */
export async function initiateLinkProof(deps: PendingLinkDeps, initiation: Initiation) {
  const { subject: accountId } = living(await deps.pending.find(deps.db.read, initiation.linkPendingToken));
  return deps.db.transact(async (tx) => {
    const means = await findMeans(tx, accountId);
    const eligible = PROOF_METHODS.filter((method) => {
      const way = deps.ways[method];
      return way?.strength === 'strong' && way.isEnrolled(means);
    });
    const { preferredMethod: preferred, origin } = initiation;
    const method = preferred !== undefined && eligible.includes(preferred) ? preferred : eligible[0];
    const way = method && deps.ways[method];
    if (method === undefined || way === undefined) throw refusal('NoMethodAvailable');
    return { method, payload: (await way.begin(tx, { accountId, origin })) ?? null };
  });
}

type Pending = Living<PendingLink>;

function living(found: Pending | string): Pending {
  if (typeof found === 'string') throw refusal('INVALID_LINK_TOKEN');
  return found;
}

interface Verification {
  readonly linkPendingToken: string;
  readonly method: ProofMethod;
  readonly proof: unknown;
  readonly origin: Origin;
}

/**
 * Verifies a proof for one link-pending token. A method below the floor is not even evaluated; five wrong proofs end the
 * token.
 *
 * @returns a challenge token that confirms this link alone
 * @throws INVALID_LINK_TOKEN, proof_tier_insufficient, WRONG_PROOF
 */
export async function verifyLinkProof(deps: PendingLinkDeps, verification: Verification): Promise<string> {
  const { linkPendingToken, method, origin } = verification;
  const way = deps.ways[method];
  const { subject } = living(await deps.pending.find(deps.db.read, linkPendingToken));
  if (way?.strength !== 'strong') throw refusal('proof_tier_insufficient');
  const { subject: accountId, hash } = living(await deps.pending.count(linkPendingToken));
  const isEnrolled = way.isEnrolled(await findMeans(deps.db.read, subject));
  const judged = isEnrolled ? await way.judge({ accountId, origin }, verification.proof) : undefined;
  if (judged === undefined) throw refusal('WRONG_PROOF');
  const token = await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (account?.isActive !== true || !(await judged.use(tx))) return undefined;
    const linkPending = hash.toString('base64url');
    const payload = { operation: 'LinkSocial', strength: 'strong', linkPending } as const;
    return deps.challenges.issue(tx, { subject: accountId, payload });
  });
  if (token === undefined) throw refusal('WRONG_PROOF');
  return token;
}

interface Confirmation {
  readonly linkPendingToken: string;
  /** The header `X-Auth-Challenge`. */
  readonly challenge: string | undefined;
  readonly origin: Origin;
}

/**
 * Connects the identity with the account whose owner has proved it, and signs in. Both tokens are used in the transaction of
 * the effect.
 *
 * @throws INVALID_LINK_TOKEN, INVALID_CHALLENGE, WRONG_OPERATION, IDENTITY_LINKED
 */
export async function confirmLink(
  deps: PendingLinkDeps,
  { linkPendingToken, challenge = '', origin }: Confirmation,
): Promise<IssuedTokens> {
  const pending = living(await deps.pending.find(deps.db.read, linkPendingToken));
  const provedAtMs = await judgeChallenge(deps, challenge, pending);
  const session = await deps.db.transact(async (tx) => {
    const { subject: accountId, payload } = living(await deps.pending.take(tx, linkPendingToken));
    if (typeof (await deps.challenges.take(tx, challenge)) === 'string') throw refusal('INVALID_CHALLENGE');
    const link = { accountId, payload, origin, provedAtMs };
    return payload.provider === undefined
      ? openLinkedMembership(deps, tx, link)
      : openLinkedAccount(deps, tx, { ...link, name: payload.provider });
  });
  deps.notifyInboxes();
  return issueSession(deps, session);
}

/** @returns when the proof was given, in milliseconds of the epoch */
async function judgeChallenge(
  { challenges, db }: PendingLinkDeps,
  challenge: string,
  pending: Pending,
): Promise<number> {
  const found = await challenges.find(db.read, challenge);
  if (typeof found === 'string') throw refusal('INVALID_CHALLENGE');
  const { operation, linkPending } = found.payload;
  const isForThis =
    operation === 'LinkSocial' &&
    linkPending === pending.hash.toString('base64url') &&
    found.subject === pending.subject;
  if (!isForThis) throw refusal('WRONG_OPERATION');
  return found.createdAtMs;
}

interface ProvedLink {
  readonly accountId: string;
  readonly payload: PendingLink;
  readonly name: string;
  readonly origin: Origin;
  readonly provedAtMs: number;
}

async function openLinkedAccount(
  deps: PendingLinkDeps,
  tx: Tx,
  { accountId, payload, name, origin, provedAtMs }: ProvedLink,
): Promise<Session> {
  await lockAccount(tx, accountId);
  const atMs = deps.clock.nowMs();
  const { subject, email, displayName, surface } = payload;
  const link = { id: randomUUIDv7(), accountId, provider: name, subject, email, displayName, atMs };
  if (await insertLink(tx, link)) {
    await recordLink(tx, { accountId, origin, event: 'linked', provider: name, atMs });
  } else if ((await findLink(tx, name, subject))?.accountId !== accountId) throw refusal('IDENTITY_LINKED');
  const arrival = { provider: { name }, surface, returnTo: surface === 'app' ? '/app/' : undefined, origin };
  return open(deps, tx, { accountId, arrival, strongProofAtMs: provedAtMs });
}
