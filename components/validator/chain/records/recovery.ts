import { equalBytes } from '#core/encoding/text.ts';
import { isSameValue } from '../consensus/round.ts';
import type { Tombstone } from '../pool/tombstones.ts';
import type {
  DecidedDocket,
  LoggedEvidence,
  LoggedTransaction,
  Mode,
  OwnMessage,
  ReadRecord,
} from './entries.ts';

interface PlacedTransaction {
  readonly transaction: LoggedTransaction;
  readonly segment: number;
}

/** The state of one register as the log records it. */
export interface RecoveredRegister {
  /** Accepted and not known to be stored. */
  readonly transactions: Map<string, PlacedTransaction>;
  /** Different records under the same ids, which a proposal needed while another record waited here. */
  readonly others: PlacedTransaction[];
  /** Decided and not known to be stored, by docket number. */
  readonly decided: Map<number, DecidedDocket>;
  /** Own messages of the latest height, in order. */
  own: OwnMessage[];
  readonly tombstones: Map<string, Tombstone>;
  /** Number of dockets that the register service was known to have stored. */
  storedHeight: number;
  mode: Mode;
  readonly evidence: LoggedEvidence[];
}

function emptyRecovery(): RecoveredRegister {
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

/** A log record of one register. */
type RegisterRecord = Exclude<ReadRecord, { readonly kind: 'drain' }>;

/** Folds the log records, oldest first, into the state that is still needed. */
export class Recovery {
  readonly registers = new Map<string, RecoveredRegister>();
  /** Start of the drain; undefined when the validator does not drain. */
  drainingSinceMs: number | undefined;

  take(record: ReadRecord, segment: number): void {
    if (record.kind === 'drain') this.drainingSinceMs = record.value.sinceMs;
    else this.#applyToRegister(record, segment);
  }

  #applyToRegister(record: RegisterRecord, segment: number): void {
    const register = this.#register(registerOf(record));
    switch (record.kind) {
      case 'transaction':
        addTransaction(register, { transaction: record.value, segment });
        break;
      case 'own':
        addOwnMessage(register, record.value);
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

  #register(registerId: string): RecoveredRegister {
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

/** The latest record wins. A carried-over segment repeats records. */
function addTransaction({ transactions, others }: RecoveredRegister, placed: PlacedTransaction): void {
  const { txId, body } = placed.transaction;
  const known = transactions.get(txId);
  if (known !== undefined && !equalBytes(known.transaction.body, body)) others.push(known);
  transactions.set(txId, placed);
}

function addOwnMessage(register: RecoveredRegister, own: OwnMessage): void {
  const height = register.own[0]?.message.height ?? -1;
  if (own.message.height < height) return;
  if (own.message.height > height) register.own = [];
  const index = register.own.findIndex((each) => isSameMessage(each.message, own.message));
  const earlier = register.own[index];
  if (own.isWithdrawn === true) register.own = register.own.filter((each) => each !== earlier);
  else if (earlier === undefined) register.own.push(own);
  else register.own[index] = { ...earlier, signature: own.signature ?? earlier.signature };
}

function isSameMessage(a: OwnMessage['message'], b: OwnMessage['message']): boolean {
  return a.kind === b.kind && a.round === b.round && isSameValue(a.value, b.value);
}

function forgetStored(register: RecoveredRegister, docketNumber: number): void {
  for (const [number, decided] of register.decided) {
    if (number > docketNumber) continue;
    for (const txId of decided.header.transactionIds) register.transactions.delete(txId);
    register.decided.delete(number);
  }
}

/** Dockets of a register in the log, stored or not, with which a register service that lost them can be restored. */
export interface LoggedDockets {
  readonly decided: ReadonlyMap<number, DecidedDocket>;
  readonly transactions: ReadonlyMap<string, PlacedTransaction>;
  /** False when the log holds later dockets that were not read. */
  readonly isAll: boolean;
}

/** The range of dockets to read. */
export interface LoggedRange {
  readonly from: number;
  /** Bytes of transactions after which no further docket is read; unlimited when absent. */
  readonly maxBytes?: number;
}

/** Reads the log twice: first the dockets of the register from `from` on, then their transactions. */
export async function readLoggedDockets(
  replay: (take: (record: ReadRecord, segment: number) => void) => Promise<void>,
  registerId: string,
  { from, maxBytes = Number.POSITIVE_INFINITY }: LoggedRange,
): Promise<LoggedDockets> {
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
    // the transactions of a docket are logged before it
    if (record.kind === 'transaction' && decided.size > 0) bytes += record.value.body.length;
    if (record.kind !== 'decided') return;
    // a carried-over segment repeats a docket behind later ones
    if (record.value.header.docketNumber > last && bytes >= maxBytes) isAll = false;
    else take(record.value);
  });
  const needed = new Set([...decided.values()].flatMap(({ header }) => header.transactionIds));
  const transactions = new Map<string, PlacedTransaction>();
  await replay((record, segment) => {
    if (record.kind !== 'transaction' || record.value.registerId !== registerId) return;
    if (needed.has(record.value.txId)) {
      transactions.set(record.value.txId, { transaction: record.value, segment });
    }
  });
  return { decided, transactions, isAll };
}

/** The first docket from `from` to below `to` that is not completely in the log; undefined when all are. */
export function findGap(loggedDockets: LoggedDockets, from: number, to: number): number | undefined {
  for (let number = from; number < to; number += 1) {
    const ids = loggedDockets.decided.get(number)?.header.transactionIds;
    if (ids === undefined || !ids.every((txId) => loggedDockets.transactions.has(txId))) return number;
  }
  return undefined;
}
