import { changeKey } from '../../plan/register/changes.ts';
import type { Aggregate, RefusedChange, RegisterChange, RegisterFacts } from '../../plan/register/facts.ts';

/** How long a refused change is not requested again while nothing else changes. */
const retentionMs = 300_000;

interface RememberedRefusal extends RefusedChange {
  readonly atMs: number;
  /** State of the register at the refusal. */
  readonly ledgerState: string;
}

/** The state that the ledger's answer to a change depends on. */
function ledgerStateOf({ policyVersion, roster, validators }: RegisterFacts): string {
  const members = validators.members.map(({ validatorId, status, operational }) => [
    validatorId,
    status,
    operational,
  ]);
  return JSON.stringify([policyVersion, roster, members]);
}

/**
 * Changes that the ledger refused, by resource. A refusal applies to one change in one state of the register, for five
 * minutes. After a restart of the operator each change is requested once more.
 */
export class RefusedChanges {
  readonly #byUid = new Map<string, Map<Aggregate, RememberedRefusal>>();

  /** Refusals that still apply. */
  find(uid: string, facts: RegisterFacts | undefined, nowMs: number): ReadonlyMap<Aggregate, RefusedChange> {
    const refusals = this.#byUid.get(uid);
    if (refusals === undefined || facts === undefined) return new Map();
    const ledgerState = ledgerStateOf(facts);
    for (const [aggregate, refusal] of refusals) {
      if (refusal.ledgerState !== ledgerState || nowMs - refusal.atMs >= retentionMs)
        refusals.delete(aggregate);
    }
    return refusals;
  }

  keep(
    uid: string,
    of: { readonly aggregate: Aggregate; readonly change: RegisterChange; readonly facts: RegisterFacts },
    said: { readonly message: string; readonly nowMs: number },
  ): void {
    const { aggregate, change, facts } = of;
    const { message, nowMs: atMs } = said;
    const refusals = this.#byUid.get(uid) ?? new Map<Aggregate, RememberedRefusal>();
    this.#byUid.set(
      uid,
      refusals.set(aggregate, { key: changeKey(change), message, atMs, ledgerState: ledgerStateOf(facts) }),
    );
  }

  forget(uid: string): void {
    this.#byUid.delete(uid);
  }
}
