import { isSameValue } from '../consensus/round.ts';
import type {
  DecidedDocket,
  LoggedTransaction,
  Mode,
  OwnMessage,
  ReadRecord,
  Snapshot,
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
  /** Decided and not known to be stored, by docket number. */
  readonly decided: Map<number, DecidedDocket>;
  /** Own messages of the latest height, in order. */
  own: OwnMessage[];
  readonly tombstones: Map<string, Tombstone>;
  snapshot: Snapshot | undefined;
  mode: Mode;
}

function emptyRecovery(): Recovered {
  return {
    transactions: new Map(),
    decided: new Map(),
    own: [],
    tombstones: new Map(),
    snapshot: undefined,
    mode: 'Running',
  };
}

/** Folds the records of the log, oldest first, into what is still of interest. */
export class Recovery {
  readonly registers = new Map<string, Recovered>();

  take(record: ReadRecord, segment: number): void {
    const register = this.#register(registerOf(record));
    switch (record.kind) {
      case 'transaction':
        register.transactions.set(record.value.txId, { transaction: record.value, segment });
        break;
      case 'own':
        takeOwn(register, record.value);
        break;
      case 'decided':
        register.decided.set(record.value.header.docketNumber, record.value);
        break;
      case 'stored':
        forgetStored(register, record.value.docketNumber);
        break;
      case 'tombstone':
        register.transactions.delete(record.value.txId);
        register.tombstones.set(record.value.txId, record.value);
        break;
      case 'snapshot':
        register.snapshot = record.value;
        break;
      case 'mode':
        register.mode = record.value.mode;
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

function registerOf(record: ReadRecord): string {
  return record.kind === 'decided' ? record.value.header.registerId : record.value.registerId;
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
