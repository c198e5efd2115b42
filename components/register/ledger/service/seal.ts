import { quorum } from '#core/ledger/consensus.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import type { SealResult, ValidatorAddress, Validators } from '../../clients/validators.ts';
import { refusal } from '../../errors.ts';
import { askAll, type FindMembers } from '../../registers/directory/ask.ts';
import type { Register } from '../../registers/state/store.ts';

interface SealDeps {
  readonly validators: Validators;
  readonly findMembers: FindMembers;
}

/** The vote timeout of the specification, and the longest wait of the route. */
const sealTimeoutMs = 30_000;

type Unsealed = Exclude<SealResult['outcome'], 'sealed'>;

/** Order of the reported reasons: a validator that was still waiting knows more than one with an empty pool. */
const precedence: readonly Unsealed[] = ['timeout', 'no_quorum', 'nothing_pending'];

/**
 * Requests a proposal from the validators of the register and waits until the docket is stored; returns its number. All
 * members are called, because the next proposer is one of them and applies the limit; the first that sees the docket
 * stored answers.
 * @param maxTransactions 0 for as many as the policy allows
 */
export async function seal(deps: SealDeps, register: Register, maxTransactions: number): Promise<number> {
  const members = await deps.findMembers(register.registerNo);
  const reached = await assertQuorum(deps, register, members);
  const request = { registerId: register.registerId, maxTransactions, timeoutMs: sealTimeoutMs };
  const requests = reached.map((at) => deps.validators.seal(at, request));
  const sealed = await firstSealed(requests);
  if (sealed !== undefined) return sealed;
  const results = await Promise.allSettled(requests);
  const outcomes = results.map((one) => (one.status === 'fulfilled' ? one.value.outcome : 'no_quorum'));
  switch (precedence.find((outcome) => outcomes.includes(outcome))) {
    case 'nothing_pending':
      throw refusal('NO_PENDING_TRANSACTIONS');
    case 'timeout':
      throw refusal('CONSENSUS_TIMEOUT');
    default:
      throw refusal('QUORUM_UNAVAILABLE', { retryAfterSeconds: 5 });
  }
}

/** The members that can be reached; refuses at once when they are fewer than a quorum. */
async function assertQuorum(
  deps: SealDeps,
  register: Register,
  members: readonly ValidatorAddress[],
): Promise<readonly ValidatorAddress[]> {
  if (members.length === 1) return members;
  const { consensus } = parsePolicy(JSON.parse(register.policyText));
  const need = quorum(members.length, consensus.signatureThresholdMin);
  const ask = (at: ValidatorAddress) => deps.validators.listPending(at, register.registerId, 1);
  const { reached } = await askAll(members, ask, { need });
  if (reached.length >= need) return reached;
  throw refusal('QUORUM_UNAVAILABLE', { retryAfterSeconds: 5 });
}

/** Number of the docket that is first seen stored; undefined when no member sees one. */
async function firstSealed(requests: readonly Promise<SealResult>[]): Promise<number | undefined> {
  const numbers = requests.map(async (one) => {
    const result = await one;
    if (result.outcome === 'sealed') return result.docketNumber;
    throw refusal('CONSENSUS_TIMEOUT');
  });
  try {
    return await Promise.any(numbers);
  } catch {
    return undefined;
  }
}
