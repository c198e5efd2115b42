import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { isRefusal } from '../admission/examine.ts';
import type { PooledTransaction } from '../pool/transaction.ts';
import type { Register } from '../sealing/register.ts';
import type { Fetcher } from './fetch.ts';
import type { Envelope, Hint, SealedTransaction } from './transport.ts';

export interface HintsOptions {
  readonly self: string;
  readonly fetcher: Fetcher;
  readonly log: Logger;
  send(to: string, envelope: Envelope): void;
  /** Admission, as for what clients send; what was hinted is not hinted again. */
  take(given: SealedTransaction): Promise<unknown>;
  charge(validatorId: string, reason: string): void;
  rest(ms: number): Promise<void>;
}

const mostIds = 256;
/** Transactions of such a size travel with the hint: that saves a question and an answer. */
const inlineBytes = 64 * 1024;
const envelopeBytes = 512 * 1024;
/** Hinted transactions of one validator that may be on their way in. */
const mostUnderWay = 4_096;
const mostUnderWayBytes = 32 * 1024 * 1024;
/** What one that is to be fetched may take, about. */
const fetchedBytes = 16 * 1024;
const retryMs = 250;
const mostAttempts = 4;
/** Of a register that does not get on, the oldest that wait. */
const mostReminded = 256;

/** Accepted transactions become known to all members, and on disk there too, before anybody proposes them (D17). */
export class Hints {
  readonly #options: HintsOptions;
  readonly #underWay = new Map<string, { count: number; bytes: number }>();

  constructor(options: HintsOptions) {
    this.#options = options;
  }

  /** Tells every other member of what was accepted here. Genesis comes to each of them from the register service (D13). */
  spread(register: Register, transactions: readonly PooledTransaction[]): void {
    for (const envelope of envelopes(
      register.id,
      transactions.filter(({ type }) => type !== 'Genesis'),
    )) {
      for (const { validatorId } of register.state.members) {
        if (validatorId !== this.#options.self) this.#options.send(validatorId, envelope);
      }
    }
  }

  /** Names what waits here to one validator, or to all of them. */
  remind(register: Register, to?: string): void {
    const transactionIds: string[] = [];
    for (const { txId, type } of register.pool.waiting()) {
      if (transactionIds.length === mostReminded) break;
      if (type !== 'Genesis') transactionIds.push(txId);
    }
    if (transactionIds.length === 0) return;
    const hint: Hint = { kind: 'hint', registerId: register.id, transactionIds, transactions: [] };
    const members = register.state.members.map((member) => member.validatorId);
    for (const member of to === undefined ? members : [to]) {
      if (member !== this.#options.self) this.#options.send(member, hint);
    }
  }

  /** Takes a hint: what is not known here is taken in, from the hint itself or from who gave it. */
  async take(register: Register, from: string, hint: Hint): Promise<void> {
    const isUnknown = (txId: string) =>
      register.pool.find(txId) === undefined && register.tombstones.find(txId) === undefined;
    const inline = hint.transactions.filter((_, index) => isUnknown(hint.transactionIds[index] ?? ''));
    const missing = hint.transactionIds.slice(hint.transactions.length).filter(isUnknown).slice(0, mostIds);
    const count = inline.length + missing.length;
    const bytes = inline.reduce(
      (sum, { record, payload }) => sum + record.length + payload.length,
      missing.length * fetchedBytes,
    );
    const underWay = this.#underWay.get(from) ?? { count: 0, bytes: 0 };
    const isTooMuch = underWay.count + count > mostUnderWay || underWay.bytes + bytes > mostUnderWayBytes;
    if (count === 0 || isTooMuch) return;
    this.#underWay.set(from, underWay);
    underWay.count += count;
    underWay.bytes += bytes;
    try {
      const given = missing.length === 0 ? [] : await this.#options.fetcher.given(from, register.id, missing);
      await Promise.all([...inline, ...given].map((each) => this.#admit(from, register, each)));
    } finally {
      underWay.count -= count;
      underWay.bytes -= bytes;
      if (underWay.count === 0) this.#underWay.delete(from);
    }
  }

  async #admit(from: string, register: Register, given: SealedTransaction, attempt = 1): Promise<void> {
    try {
      await this.#options.take(given);
    } catch (error) {
      // Its predecessor may be on its way in, in another hint.
      if (isAppError(error) && error.code === 'VAL_CHAIN_001' && attempt < mostAttempts) {
        await this.#options.rest(retryMs);
        await this.#admit(from, register, given, attempt + 1);
        return;
      }
      // Time, authority and chain may be judged differently a moment later or elsewhere; shape and signatures may not.
      const isFault = isAppError(error) && /^VAL_(STRUCT|HASH|SIG)_/.test(error.code);
      if (isFault) this.#options.charge(from, 'hint');
      if (!isRefusal(error)) {
        this.#options.log.debug(
          { err: error, registerId: register.id, from },
          'hinted transaction not taken',
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
    if (batch.length === mostIds || bytes + transaction.sizeBytes > envelopeBytes) flush();
    batch.push(transaction);
    if (isSmall) bytes += transaction.sizeBytes;
  }
  flush();
  return hints;
}

/** Small ones first: those that travel with the hint are the first of its ids. */
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

/** A transaction as it travels. */
export function sealedOf({ record, payload, payloadHashForm }: PooledTransaction): SealedTransaction {
  return { record, payload, payloadHashForm };
}
