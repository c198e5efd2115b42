import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Strength } from '../../tokens/claims/strength.ts';
import { createTokens, type OneTimeTokens } from '../../tokens/one-time/one-time.ts';
import { findFamily } from '../../tokens/sessions/store.ts';

/** Operations on an account that want a proof of the last five minutes. */
export const SCOPED_OPERATIONS = [
  'LinkSocial',
  'RemoveAuthMethod',
  'SetPassword',
  'ChangePassword',
  'RemovePassword',
  'ChangeEmail',
  'Disable2Fa',
  'ResetFactors',
] as const;
export type ScopedOperation = (typeof SCOPED_OPERATIONS)[number];

/** What a challenge token was given for; its subject is the account. */
const challengePayload = z.object({
  operation: z.enum(SCOPED_OPERATIONS),
  strength: z.enum(['basic', 'strong']),
  /** Of the link-pending token that the proof is for: one provider, one subject, one account. */
  linkPending: z.string().optional(),
});
type ChallengePayload = z.output<typeof challengePayload>;

/** A proof holds for this time. */
export const proofLifetimeMs = 300_000;

/** Header of a request that is refused without a recent proof. */
export const challengeHeaders = z.object({
  'x-auth-challenge': z
    .string()
    .max(256)
    .optional()
    .describe(
      'Token of `POST /api/auth/challenge/verify`; not needed within 300 s of a proof in this session.',
    ),
});

/** The challenge token of a request, from the header that its route declares. */
export function challengeOf(request: {
  readonly headers: Readonly<Record<string, unknown>>;
}): string | undefined {
  const value = request.headers['x-auth-challenge'];
  return typeof value === 'string' ? value : undefined;
}

export interface GateDeps {
  readonly clock: Clock;
  readonly challenges: OneTimeTokens<ChallengePayload>;
}

/** Challenge tokens; the subject is the account. */
export function createChallengeTokens(deps: Parameters<typeof createTokens>[0]): GateDeps['challenges'] {
  const kind = { purpose: 'challenge', payload: challengePayload, lifetimeMs: proofLifetimeMs } as const;
  return createTokens(deps, kind, 'ch_');
}

interface Demand {
  readonly caller: Caller;
  /** The header `X-Auth-Challenge`. */
  readonly challenge: string | undefined;
  readonly operation: ScopedOperation;
  readonly strength: Strength;
}

/**
 * Passes when the caller has proved to be the owner within the last 300 s: by a challenge token for this operation, which
 * is used in the transaction of the operation, or in the session of the token itself. A stolen token alone does not pass.
 *
 * @throws insufficient_user_authentication (RFC 9470)
 */
export async function requireRecentProof(
  deps: GateDeps,
  tx: Transactor<TenantDatabase>,
  demand: Demand,
): Promise<void> {
  const passes =
    demand.challenge === undefined
      ? await provedInSession(deps, tx, demand)
      : await provedByChallenge(deps, tx, demand.challenge, demand);
  if (!passes) throw refusal('insufficient_user_authentication');
}

async function provedByChallenge(
  { challenges }: GateDeps,
  tx: Transactor<TenantDatabase>,
  token: string,
  { caller, operation, strength }: Demand,
): Promise<boolean> {
  const taken = await challenges.take(tx, token);
  if (typeof taken === 'string') return false;
  const { payload } = taken;
  return (
    taken.subject === caller.platformUserId &&
    payload.operation === operation &&
    payload.linkPending === undefined &&
    suffices(payload.strength, strength)
  );
}

async function provedInSession(
  { clock }: GateDeps,
  tx: Transactor<TenantDatabase>,
  { caller, strength }: Demand,
): Promise<boolean> {
  if (caller.sessionId === undefined) return false;
  const family = await findFamily(tx, caller.sessionId);
  if (family === undefined || family.revoked || family.platformUserId !== caller.platformUserId) return false;
  const sinceMs = clock.nowMs() - proofLifetimeMs;
  const isRecent = (atMs: number | undefined) => atMs !== undefined && atMs >= sinceMs;
  return isRecent(family.strongProofAtMs) || (strength === 'basic' && isRecent(family.basicProofAtMs));
}

function suffices(given: Strength, wanted: Strength): boolean {
  return given === 'strong' || wanted === 'basic';
}
