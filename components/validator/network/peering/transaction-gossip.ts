import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { isRefusal } from '../../intake/verification/verify-peer-transactions.ts';
import type { Envelope, Hint, SealedTransaction } from '../transport/transport.ts';
import type { Fetcher } from './fetch.ts';

interface TransactionGossipOptions {
  readonly self: string;
  readonly fetcher: Fetcher;
  readonly log: Logger;
  send(to: string, envelope: Envelope): void;
  /** Admits a transaction like a client's; it is not announced again. */
  admit(transaction: SealedTransaction): Promise<unknown>;
  reportFault(validatorId: string, reason: string): void;
  sleep(ms: number): Promise<void>;
}

const maxIds = 256;
/** Transactions up to this size are sent with the announcement, which saves a round trip. */
const inlineBytes = 64 * 1024;
const envelopeBytes = 512 * 1024;
/** Bounds of a validator's announced transactions in admission. */
const maxInFlight = 4_096;
const maxInFlightBytes = 32 * 1024 * 1024;
/** Estimated size of a transaction that has to be fetched. */
const fetchedBytes = 16 * 1024;
const retryMs = 250;
const maxAttempts = 4;
/** Bound of transactions that are announced again for a stalled register, oldest first. */
const maxReannounced = 256;

/** Announces accepted transactions, so that all members log them before one of them proposes them. */
export class TransactionGossip {
  readonly #options: TransactionGossipOptions;
  readonly #inFlight = new Map<string, { count: number; bytes: number }>();

  constructor(options: TransactionGossipOptions) {
    this.#options = options;
  }

  /** Announces accepted transactions to the other members. The register service sends genesis to each member itself. */
  announce(register: RegisterChain, transactions: readonly PooledTransaction[]): void {
    for (const envelope of envelopes(
      register.id,
      transactions.filter(({ type }) => type !== 'Genesis'),
    )) {
      for (const { validatorId } of register.state.members) {
        if (validatorId !== this.#options.self) this.#options.send(validatorId, envelope);
      }
    }
  }

  /** Announces the waiting transactions again, to one validator or to all members. */
  reannounce(register: RegisterChain, to?: string): void {
    const transactionIds: string[] = [];
    for (const { txId, type } of register.pool.waiting()) {
      if (transactionIds.length === maxReannounced) break;
      if (type !== 'Genesis') transactionIds.push(txId);
    }
    if (transactionIds.length === 0) return;
    const hint: Hint = { kind: 'hint', registerId: register.id, transactionIds, transactions: [] };
    const members = register.state.members.map((member) => member.validatorId);
    for (const member of to === undefined ? members : [to]) {
      if (member !== this.#options.self) this.#options.send(member, hint);
    }
  }

  /** Handles an announcement: admits unknown transactions, from the envelope or fetched from its sender. */
  async admit(register: RegisterChain, from: string, hint: Hint): Promise<void> {
    const isUnknown = (txId: string) =>
      register.pool.find(txId) === undefined && register.tombstones.find(txId) === undefined;
    const inline = hint.transactions.filter((_, index) => isUnknown(hint.transactionIds[index] ?? ''));
    const missing = hint.transactionIds.slice(hint.transactions.length).filter(isUnknown).slice(0, maxIds);
    const count = inline.length + missing.length;
    const bytes = inline.reduce(
      (sum, { record, payload }) => sum + record.length + payload.length,
      missing.length * fetchedBytes,
    );
    const inFlight = this.#inFlight.get(from) ?? { count: 0, bytes: 0 };
    const exceedsLimit = inFlight.count + count > maxInFlight || inFlight.bytes + bytes > maxInFlightBytes;
    if (count === 0 || exceedsLimit) return;
    this.#inFlight.set(from, inFlight);
    inFlight.count += count;
    inFlight.bytes += bytes;
    try {
      const fetched =
        missing.length === 0 ? [] : await this.#options.fetcher.fetchRecords(from, register.id, missing);
      await Promise.all([...inline, ...fetched].map((each) => this.#admit(from, register, each)));
    } finally {
      inFlight.count -= count;
      inFlight.bytes -= bytes;
      if (inFlight.count === 0) this.#inFlight.delete(from);
    }
  }

  async #admit(
    from: string,
    register: RegisterChain,
    transaction: SealedTransaction,
    attempt = 1,
  ): Promise<void> {
    try {
      await this.#options.admit(transaction);
    } catch (error) {
      // The predecessor may still be in admission, from another announcement.
      if (isAppError(error) && error.code === 'VAL_CHAIN_001' && attempt < maxAttempts) {
        await this.#options.sleep(retryMs);
        await this.#admit(from, register, transaction, attempt + 1);
        return;
      }
      // Time, authority and chain may be judged differently later or by another member; shape and signatures may not.
      const isFault = isAppError(error) && /^VAL_(STRUCT|HASH|SIG)_/.test(error.code);
      if (isFault) this.#options.reportFault(from, 'hint');
      if (!isRefusal(error)) {
        this.#options.log.debug(
          { err: error, registerId: register.id, from },
          'an announced transaction was not admitted',
        );
      }
    }
  }
}

function envelopes(registerId: string, transactions: readonly PooledTransaction[]): Hint[] {
  const hints: Hint[] = [];
  let batch: PooledTransaction[] = [];
  let bytes = 0;
  const flush = () => {
    if (batch.length > 0) hints.push(hintOf(registerId, batch));
    [batch, bytes] = [[], 0];
  };
  for (const transaction of transactions) {
    const isSmall = transaction.sizeBytes <= inlineBytes;
    if (batch.length === maxIds || bytes + transaction.sizeBytes > envelopeBytes) flush();
    batch.push(transaction);
    if (isSmall) bytes += transaction.sizeBytes;
  }
  flush();
  return hints;
}

/** Small transactions come first, since the inline ones must be the first of the ids. */
function hintOf(registerId: string, batch: readonly PooledTransaction[]): Hint {
  const small = batch.filter(({ sizeBytes }) => sizeBytes <= inlineBytes);
  const large = batch.filter(({ sizeBytes }) => sizeBytes > inlineBytes);
  return {
    kind: 'hint',
    registerId,
    transactionIds: [...small, ...large].map(({ txId }) => txId),
    transactions: small.map(sealedOf),
  };
}

/** The transferable form of a pooled transaction. */
export function sealedOf({ record, payload, payloadHashForm }: PooledTransaction): SealedTransaction {
  return { record, payload, payloadHashForm };
}
