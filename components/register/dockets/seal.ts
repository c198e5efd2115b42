import type { Validators } from '../clients.ts';
import { askOne, type FindMembers } from '../directory/ask.ts';
import { refusal } from '../errors.ts';
import type { Register } from '../registers/store.ts';

export interface SealDeps {
  readonly validators: Validators;
  readonly findMembers: FindMembers;
}

/** The vote timeout of the specification, and what the route waits at most. */
const sealTimeoutMs = 30_000;

/**
 * Asks a validator of the register to propose now and waits until the docket is stored (L-63). Returns its number.
 * @param maxTransactions 0 for as many as the policy allows
 */
export async function seal(deps: SealDeps, register: Register, maxTransactions: number): Promise<number> {
  const members = await deps.findMembers(register.registerNo);
  const request = { registerId: register.registerId, maxTransactions, timeoutMs: sealTimeoutMs };
  const result = await askOne(members, (at) => deps.validators.seal(at, request));
  switch (result.outcome) {
    case 'sealed':
      return result.docketNumber;
    case 'nothing_pending':
      throw refusal('NO_PENDING_TRANSACTIONS');
    case 'no_quorum':
      throw refusal('QUORUM_UNAVAILABLE', { retryAfterSeconds: 5 });
    case 'timeout':
      throw refusal('CONSENSUS_TIMEOUT');
  }
}
