import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Value } from '../consensus/messages.ts';
import { identity } from '../sealing/sign-bytes.ts';
import type { ProposalEnvelope } from './transport.ts';

/** The content of a proposal: its header and record hashes, authenticated by the proposal's signature. */
export interface Offer {
  readonly header: DocketHeader;
  readonly recordHashes: readonly string[];
  readonly proposer: string;
  /** Peers that sent it and so may have the records. */
  readonly sources: Set<string>;
}

/** Bound per proposer over all registers; a proposer that exceeds it evicts its own proposals. */
const mostTransactions = 50_000;
/** Approximate size of a transaction's entry, by which other text is counted too. */
const transactionBytes = 256;
const mostOffers = 4_096;

/** Proposals that are not decided yet, bounded per proposer. */
export class Offers {
  readonly #offers = new Map<string, Offer>();
  readonly #registers = new Map<string, Set<string>>();
  readonly #proposers = new Map<string, { readonly names: Set<string>; transactions: number }>();

  add(from: string, { registerId, proposal, header, recordHashes }: ProposalEnvelope): void {
    const name = nameOf(registerId, proposal.value);
    const known = this.#offers.get(name);
    if (known !== undefined) {
      known.sources.add(from);
      return;
    }
    const proposer = proposal.validatorId;
    const offer = { header, recordHashes, proposer, sources: new Set([from]) };
    this.#offers.set(name, offer);
    const names = this.#registers.get(registerId) ?? new Set();
    this.#registers.set(registerId, names.add(name));
    const own = this.#proposers.get(proposer) ?? { names: new Set<string>(), transactions: 0 };
    this.#proposers.set(proposer, own);
    own.names.add(name);
    own.transactions += weigh(offer);
    for (const oldest of own.names) {
      const isFine = own.transactions <= mostTransactions && own.names.size <= mostOffers;
      if (isFine || oldest === name) break;
      this.#remove(oldest);
    }
  }

  find(registerId: string, value: Omit<Value, 'timestamp'>): Offer | undefined {
    return this.#offers.get(nameOf(registerId, value));
  }

  /** Drops the proposals below a register's height. */
  forgetBelow(registerId: string, height: number): void {
    for (const name of this.#registers.get(registerId) ?? []) {
      if ((this.#offers.get(name)?.header.docketNumber ?? 0) < height) this.#remove(name);
    }
  }

  #remove(name: string): void {
    const offer = this.#offers.get(name);
    if (offer === undefined) return;
    this.#offers.delete(name);
    const { registerId } = offer.header;
    const names = this.#registers.get(registerId);
    names?.delete(name);
    if (names?.size === 0) this.#registers.delete(registerId);
    const own = this.#proposers.get(offer.proposer);
    if (own === undefined) return;
    own.names.delete(name);
    own.transactions -= weigh(offer);
    if (own.names.size === 0) this.#proposers.delete(offer.proposer);
  }
}

/** Size of a proposal in transactions. */
function weigh({ header, recordHashes }: Offer): number {
  return recordHashes.length + Math.ceil((header.genesisConfig?.length ?? 0) / transactionBytes);
}

function nameOf(registerId: string, value: Omit<Value, 'timestamp'>): string {
  return `${registerId}/${identity(value)}`;
}
