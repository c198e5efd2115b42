import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Value } from '../../chain/consensus/messages.ts';
import { identity } from '../../chain/sealing/sign-bytes.ts';
import type { ProposalEnvelope } from '../transport/transport.ts';

/** The content of a proposal: its header and record hashes, authenticated by the proposal's signature. */
interface CachedProposal {
  readonly header: DocketHeader;
  readonly recordHashes: readonly string[];
  readonly proposer: string;
  /** Peers that sent it and so may have the records. */
  readonly sources: Set<string>;
}

/** Bound per proposer over all registers; a proposer that exceeds it evicts its own proposals. */
const maxTransactions = 50_000;
/** Approximate size of a transaction's entry, by which other text is counted too. */
const transactionBytes = 256;
const maxProposals = 4_096;

/** Proposals that are not decided yet, bounded per proposer. */
export class ProposalCache {
  readonly #proposals = new Map<string, CachedProposal>();
  readonly #registers = new Map<string, Set<string>>();
  readonly #proposers = new Map<string, { readonly names: Set<string>; transactions: number }>();

  add(from: string, { registerId, proposal, header, recordHashes }: ProposalEnvelope): void {
    const name = nameOf(registerId, proposal.value);
    const known = this.#proposals.get(name);
    if (known !== undefined) {
      known.sources.add(from);
      return;
    }
    const proposer = proposal.validatorId;
    const cached = { header, recordHashes, proposer, sources: new Set([from]) };
    this.#proposals.set(name, cached);
    const names = this.#registers.get(registerId) ?? new Set();
    this.#registers.set(registerId, names.add(name));
    const ofProposer = this.#proposers.get(proposer) ?? { names: new Set<string>(), transactions: 0 };
    this.#proposers.set(proposer, ofProposer);
    ofProposer.names.add(name);
    ofProposer.transactions += sizeOf(cached);
    for (const oldest of ofProposer.names) {
      const isAcceptable =
        ofProposer.transactions <= maxTransactions && ofProposer.names.size <= maxProposals;
      if (isAcceptable || oldest === name) break;
      this.#remove(oldest);
    }
  }

  find(registerId: string, value: Omit<Value, 'timestamp'>): CachedProposal | undefined {
    return this.#proposals.get(nameOf(registerId, value));
  }

  /** Drops the proposals below a register's height. */
  forgetBelow(registerId: string, height: number): void {
    for (const name of this.#registers.get(registerId) ?? []) {
      if ((this.#proposals.get(name)?.header.docketNumber ?? 0) < height) this.#remove(name);
    }
  }

  #remove(name: string): void {
    const cached = this.#proposals.get(name);
    if (cached === undefined) return;
    this.#proposals.delete(name);
    const { registerId } = cached.header;
    const names = this.#registers.get(registerId);
    names?.delete(name);
    if (names?.size === 0) this.#registers.delete(registerId);
    const ofProposer = this.#proposers.get(cached.proposer);
    if (ofProposer === undefined) return;
    ofProposer.names.delete(name);
    ofProposer.transactions -= sizeOf(cached);
    if (ofProposer.names.size === 0) this.#proposers.delete(cached.proposer);
  }
}

/** Size of a proposal in transactions. */
function sizeOf({ header, recordHashes }: CachedProposal): number {
  return recordHashes.length + Math.ceil((header.genesisConfig?.length ?? 0) / transactionBytes);
}

function nameOf(registerId: string, value: Omit<Value, 'timestamp'>): string {
  return `${registerId}/${identity(value)}`;
}
