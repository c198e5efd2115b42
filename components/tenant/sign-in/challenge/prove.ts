import type { Caller } from '#core/identity/claims.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import { type Means, ownsStrongFactor } from '../../people/means/means.ts';
import { findMeans } from '../../people/means/store.ts';
import type { Origin } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import type { Strength } from '../../tokens/claims/strength.ts';
import { stampProof } from '../../tokens/sessions/store.ts';
import type { GateDeps, ScopedOperation } from './gate.ts';

type Tx = Transactor<TenantDatabase>;

/** In the order in which they are offered: strong ones first. */
export const PROOF_METHODS = ['Totp', 'Passkey', 'ReOAuth', 'Password', 'EmailOtp', 'SmsOtp'] as const;
export type ProofMethod = (typeof PROOF_METHODS)[number];

export const TARGET_KINDS = ['Password', 'Social', 'Passkey'] as const;
export type TargetKind = (typeof TARGET_KINDS)[number];

/** A request to prove something: who asks, with what, from where. */
export interface Proving {
  readonly accountId: string;
  readonly origin: Origin;
}

/** One way to prove to be the owner of an account. */
export interface ProofWay {
  readonly strength: Strength;
  isEnrolled(means: Means): boolean;
  /** @returns what the person's device needs, for example options of a passkey; sends a code where one is sent */
  begin(tx: Tx, proving: Proving): Promise<unknown>;
  /**
   * Judges the proof; failures that count toward the lock are counted here. `use` is run in the transaction of the
   * effect, for proofs that act once. @returns undefined when the proof is wrong
   */
  judge(proving: Proving, proof: unknown): Promise<{ use(tx: Tx): Promise<boolean> } | undefined>;
}

export type ProofWays = Partial<Readonly<Record<ProofMethod, ProofWay>>>;

export interface ProveDeps extends GateDeps {
  readonly db: Database<TenantDatabase>;
  readonly ways: ProofWays;
}

interface Operation {
  readonly operation: ScopedOperation;
  readonly target: TargetKind | undefined;
}

/** The least strength that an operation wants from the account. */
export function floorOf({ operation, target }: Operation, means: Means): Strength {
  switch (operation) {
    case 'RemoveAuthMethod':
      return target === 'Passkey' || ownsStrongFactor(means) ? 'strong' : 'basic';
    case 'RemovePassword':
      return ownsStrongFactor(means) ? 'strong' : 'basic';
    case 'LinkSocial':
    case 'Disable2Fa':
    case 'ResetFactors':
      return 'strong';
    case 'SetPassword':
    case 'ChangePassword':
    case 'ChangeEmail':
      return 'basic';
  }
}

function suffices(way: ProofWay, floor: Strength): boolean {
  return way.strength === 'strong' || floor === 'basic';
}

interface Initiation extends Operation {
  readonly caller: Caller;
  readonly preferredMethod: ProofMethod | undefined;
  readonly origin: Origin;
}

/**
 * Chooses how the caller proves to be the owner: the preferred method if it is strong enough, else the first that is.
 * @throws NoMethodAvailable, RATE_LIMITED where a code was sent just before
 */
export async function initiateProof(deps: ProveDeps, initiation: Initiation) {
  const accountId = requirePerson(initiation.caller);
  return deps.db.transact(async (tx) => {
    const means = await findMeans(tx, accountId);
    const floor = floorOf(initiation, means);
    const eligible = PROOF_METHODS.filter((method) => {
      const way = deps.ways[method];
      return way?.isEnrolled(means) === true && suffices(way, floor);
    });
    const { preferredMethod } = initiation;
    const method =
      preferredMethod !== undefined && eligible.includes(preferredMethod) ? preferredMethod : eligible[0];
    const way = method && deps.ways[method];
    if (method === undefined || way === undefined) throw refusal('NoMethodAvailable');
    return { method, payload: (await way.begin(tx, { accountId, origin: initiation.origin })) ?? null };
  });
}

interface Verification extends Operation {
  readonly caller: Caller;
  readonly method: ProofMethod;
  readonly proof: unknown;
  readonly origin: Origin;
}

/**
 * Verifies a proof. It gives a token for the operation, and is one of the session too. A method below the floor is not
 * even evaluated.
 * @throws proof_tier_insufficient, WRONG_PROOF
 */
export async function verifyProof(deps: ProveDeps, verification: Verification): Promise<string> {
  const { caller, method, operation, origin } = verification;
  const accountId = requirePerson(caller);
  const means = await findMeans(deps.db.read, accountId);
  const way = deps.ways[method];
  if (way === undefined || !way.isEnrolled(means)) throw refusal('WRONG_PROOF');
  if (!suffices(way, floorOf(verification, means))) throw refusal('proof_tier_insufficient');
  const judged = await way.judge({ accountId, origin }, verification.proof);
  if (judged === undefined) throw refusal('WRONG_PROOF');
  const { strength } = way;
  const token = await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    if (account?.isActive !== true || !(await judged.use(tx))) return undefined;
    const atMs = deps.clock.nowMs();
    if (caller.sessionId !== undefined) await stampProof(tx, caller.sessionId, { strength, atMs });
    return deps.challenges.issue(tx, { subject: accountId, payload: { operation, strength } });
  });
  if (token === undefined) throw refusal('WRONG_PROOF');
  return token;
}
