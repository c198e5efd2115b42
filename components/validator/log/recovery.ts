import { equalBytes } from '#core/encoding/text.ts';
import { isSameValue } from '../consensus/round.ts';
import type {
  DecidedDocket,
  LoggedEvidence,
  LoggedTransaction,
  Mode,
  OwnMessage,
  ReadRecord,
  Tombstone,
} from './entries.ts';

export interface Placed {
  readonly transaction: LoggedTransaction;
  readonly segment: number;
}

/** What the log says of one register after the last start. */
export interface Recovered {
  /** Accepted and not known to be stored. */
  readonly transactions: Map<string, Placed>;
  /** Other records under ids of those: what a proposal needed while another one waited here. */
  readonly others: Placed[];
  /** Decided and not known to be stored, by docket number. */
  readonly decided: Map<number, DecidedDocket>;
  /** Own messages of the latest height, in order. */
  own: OwnMessage[];
  readonly tombstones: Map<string, Tombstone>;
  /** How many dockets the register service was known to have stored. */
  storedHeight: number;
  mode: Mode;
  readonly evidence: LoggedEvidence[];
}

function emptyRecovery(): Recovered {
  return {
    transactions: new Map(),
    others: [],
    decided: new Map(),
    own: [],
    tombstones: new Map(),
    storedHeight: 0,
    mode: 'Running',
    evidence: [],
  };
}

/** A record that is about one register. */
type RegisterRecord = Exclude<ReadRecord, { readonly kind: 'drain' }>;

/** Folds the records of the log, oldest first, into what is still of interest. */
export class Recovery {
  readonly registers = new Map<string, Recovered>();
  /** Since when the validator drains; undefined when it does not. */
  drainingSinceMs: number | undefined;

  take(record: ReadRecord, segment: number): void {
    if (record.kind === 'drain') this.drainingSinceMs = record.value.sinceMs;
    else this.#takeOf(record, segment);
  }

  #takeOf(record: RegisterRecord, segment: number): void {
    const register = this.#register(registerOf(record));
    switch (record.kind) {
      case 'transaction':
        takeTransaction(register, { transaction: record.value, segment });
        break;
      case 'own':
        takeOwn(register, record.value);
        break;
      case 'decided':
        register.decided.set(record.value.header.docketNumber, record.value);
        break;
      case 'stored':
        forgetStored(register, record.value.docketNumber);
        register.storedHeight = Math.max(register.storedHeight, record.value.docketNumber + 1);
        break;
      case 'tombstone':
        register.transactions.delete(record.value.txId);
        register.tombstones.set(record.value.txId, record.value);
        break;
      case 'snapshot':
        register.storedHeight = Math.max(register.storedHeight, record.value.height);
        break;
      case 'mode':
        register.mode = record.value.mode;
        break;
      case 'evidence':
        register.evidence.push(record.value);
        break;
    }
  }

  #register(registerId: string): Recovered {
    let register = this.registers.get(registerId);
    if (register === undefined) {
      register = emptyRecovery();
      this.registers.set(registerId, register);
    }
    return register;
  }
}

function registerOf(record: RegisterRecord): string {
  return record.kind === 'decided' ? record.value.header.registerId : record.value.registerId;
}

/** What came last counts; a segment that is carried on brings the same record again. */
function takeTransaction({ transactions, others }: Recovered, placed: Placed): void {
  const { txId, body } = placed.transaction;
  const known = transactions.get(txId);
  if (known !== undefined && !equalBytes(known.transaction.body, body)) others.push(known);
  transactions.set(txId, placed);
}

function takeOwn(register: Recovered, own: OwnMessage): void {
  const height = register.own[0]?.message.height ?? -1;
  if (own.message.height > height) register.own = [own];
  if (own.message.height !== height) return;
  const place = register.own.findIndex((each) => isSameMessage(each.message, own.message));
  const earlier = register.own[place];
  if (earlier === undefined) register.own.push(own);
  else register.own[place] = { ...earlier, signature: own.signature ?? earlier.signature };
}

function isSameMessage(a: OwnMessage['message'], b: OwnMessage['message']): boolean {
  return a.kind === b.kind && a.round === b.round && isSameValue(a.value, b.value);
}

function forgetStored(register: Recovered, docketNumber: number): void {
  for (const [number, decided] of register.decided) {
    if (number > docketNumber) continue;
    for (const txId of decided.header.transactionIds) register.transactions.delete(txId);
    register.decided.delete(number);
  }
}

/** What the log still holds of a register from one docket on, stored or not: to give it back to a register service that lost it. */
export interface Held {
  readonly decided: ReadonlyMap<number, DecidedDocket>;
  readonly transactions: ReadonlyMap<string, Placed>;
  /** False when the log holds later dockets that were not taken. */
  readonly isAll: boolean;
}

/** Which dockets of a register are read. */
export interface HeldRange {
  readonly from: number;
  /** Bytes of transactions behind which no further docket is taken; without end when absent. */
  readonly mostBytes?: number;
}

/** Reads the log of a register twice: which dockets it holds from `from` on, then their transactions. */
export async function readHeld(
  replay: (take: (record: ReadRecord, segment: number) => void) => Promise<void>,
  registerId: string,
  { from, mostBytes = Number.POSITIVE_INFINITY }: HeldRange,
): Promise<Held> {
  const decided = new Map<number, DecidedDocket>();
  let last = from;
  let bytes = 0;
  let isAll = true;
  const take = (docket: DecidedDocket) => {
    const { docketNumber } = docket.header;
    if (docketNumber < from) return;
    last = Math.max(last, docketNumber);
    decided.set(docketNumber, docket);
  };
  await replay((record) => {
    if (record.kind === 'drain' || registerOf(record) !== registerId) return;
    // what a docket names is logged before it
    if (record.kind === 'transaction' && decided.size > 0) bytes += record.value.body.length;
    if (record.kind !== 'decided') return;
    // a segment that is carried on brings a docket again, behind later ones
    if (record.value.header.docketNumber > last && bytes >= mostBytes) isAll = false;
    else take(record.value);
  });
  const wanted = new Set([...decided.values()].flatMap(({ header }) => header.transactionIds));
  const transactions = new Map<string, Placed>();
  await replay((record, segment) => {
    if (record.kind !== 'transaction' || record.value.registerId !== registerId) return;
    if (wanted.has(record.value.txId)) {
      transactions.set(record.value.txId, { transaction: record.value, segment });
    }
  });
  return { decided, transactions, isAll };
}

/** The first docket from `from` to below `to` that cannot be given back whole; undefined when all of them can. */
export function findGap(held: Held, from: number, to: number): number | undefined {
  for (let number = from; number < to; number += 1) {
    const ids = held.decided.get(number)?.header.transactionIds;
    if (ids === undefined || !ids.every((txId) => held.transactions.has(txId))) return number;
  }
  return undefined;
}
