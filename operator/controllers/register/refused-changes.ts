import { wishKey } from '../../plan/register/changes.ts';
import type { Aggregate, Refused, RegisterChange, RegisterFacts } from '../../plan/register/facts.ts';

/** So long a change that the ledger refused is not asked for again while nothing else changes. */
const FORGET_MS = 300_000;

interface Kept extends Refused {
  readonly atMs: number;
  /** Of the register when it was refused. */
  readonly standing: string;
}

/** What the ledger's answer to a change depends on, besides the change. */
function standingOf({ policyVersion, roster, validators }: RegisterFacts): string {
  const members = validators.members.map(({ validatorId, status, operational }) => [
    validatorId,
    status,
    operational,
  ]);
  return JSON.stringify([policyVersion, roster, members]);
}

/**
 * Changes that the ledger refused, by resource. A refusal holds for one change and one state of the register, and for
 * five minutes; after a start of the operator each is asked for once more.
 */
export class RefusalMemory {
  readonly #byUid = new Map<string, Map<Aggregate, Kept>>();

  /** What is not to be asked for again now. */
  find(uid: string, facts: RegisterFacts | undefined, nowMs: number): ReadonlyMap<Aggregate, Refused> {
    const kept = this.#byUid.get(uid);
    if (kept === undefined || facts === undefined) return new Map();
    const standing = standingOf(facts);
    for (const [aggregate, refusal] of kept) {
      if (refusal.standing !== standing || nowMs - refusal.atMs >= FORGET_MS) kept.delete(aggregate);
    }
    return kept;
  }

  keep(
    uid: string,
    of: { readonly aggregate: Aggregate; readonly change: RegisterChange; readonly facts: RegisterFacts },
    said: { readonly message: string; readonly nowMs: number },
  ): void {
    const { aggregate, change, facts } = of;
    const { message, nowMs: atMs } = said;
    const kept = this.#byUid.get(uid) ?? new Map<Aggregate, Kept>();
    this.#byUid.set(
      uid,
      kept.set(aggregate, { wish: wishKey(change), message, atMs, standing: standingOf(facts) }),
    );
  }

  forget(uid: string): void {
    this.#byUid.delete(uid);
  }
}
