import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { Voters } from '../../chain/sealing/sign-bytes.ts';
import type { RegisterState } from '../../chain/state/state.ts';

export interface PastVoters extends Voters {
  /** policy consensus.signatureThresholdMin. */
  readonly quorumMin: number;
}

interface ValidatorSetTerm {
  readonly from: number;
  readonly voters: PastVoters;
}

const maxTerms = 16;

/**
 * The first docket that the current set decides. The policy's threshold may have differed then, which matters only to
 * certificates, and those need a quorum of the set in any case.
 */
function setSince({ ledger, height }: RegisterState): number {
  const changes = ledger.validators.flatMap(({ status, effectiveFromDocket }) =>
    status === 'Pending' ? [] : effectiveFromDocket,
  );
  return Math.min(height, Math.max(0, ...changes));
}

/** The validator sets of each register's latest heights, so that messages of those heights can still be verified. */
export class VoterHistory {
  readonly #registers = new Map<string, ValidatorSetTerm[]>();

  /** Records the set that decides the register's next docket. */
  record({ id, state }: RegisterChain): void {
    const terms = this.#registers.get(id) ?? [];
    const { registerId, networkId, members, membersHash, rules, height } = state;
    const quorumMin = rules.signatureThresholdMin;
    const last = terms.at(-1)?.voters;
    if (last?.membersHash === membersHash && last.quorumMin === quorumMin) return;
    const from = last === undefined ? setSince(state) : height;
    terms.push({ from, voters: { registerId, networkId, members, membersHash, quorumMin } });
    this.#registers.set(id, terms.slice(-maxTerms));
  }

  /** Undefined for heights before the recorded ones. */
  find(registerId: string, height: number): PastVoters | undefined {
    return this.#registers.get(registerId)?.findLast(({ from }) => from <= height)?.voters;
  }
}
