import { fromUtf8, utf8 } from '#core/encoding/text.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import { parseRecord, recordLeaf } from '#core/ledger/record.ts';
import { findReplayKey } from '#core/ledger/replay.ts';
import type { Entry } from '../../disk/log/format.ts';
import { failure } from '../../errors.ts';
import type { PeerEvidence, Proof } from '../consensus/evidence.ts';
import type { RoundValue } from '../consensus/machine-state.ts';
import type { UnsignedMessage, Vote } from '../consensus/messages.ts';
import { findStep } from '../pool/step.ts';
import type { Tombstone } from '../pool/tombstones.ts';
import type { PooledTransaction } from '../pool/transaction.ts';

/**
 * An own consensus message. It is logged before it is signed, so that the same bytes can be signed again after a crash, and
 * logged again with its signature. The signer repeats only what it signed last, so the next own message waits for that.
 */
export interface OwnMessage {
  readonly registerId: string;
  readonly message: UnsignedMessage;
  readonly timestamp: string;
  readonly locked: RoundValue | undefined;
  readonly valid: RoundValue | undefined;
  /** The docket that the message or `valid` refers to, logged at its first appearance. */
  readonly header?: DocketHeader | undefined;
  /**
   * The other members' prevotes that `valid` rests on, logged at their first appearance. A lock whose quorum cannot be shown
   * to the others could keep a height from ever ending.
   */
  readonly polka?: readonly Pick<Vote, 'validatorId' | 'timestamp' | 'signature'>[] | undefined;
  /** Standard base64; absent until the signer has signed. */
  readonly signature?: string | undefined;
  /** A vote that was logged in advance and that the signer did not sign: it is not repeated after a restart. */
  readonly isWithdrawn?: boolean | undefined;
}

export interface DecidedDocket {
  readonly header: DocketHeader;
  readonly certificate: Certificate;
}

interface StoredDocket {
  readonly registerId: string;
  readonly docketNumber: number;
}

/** The number of dockets that the register service had stored. It must never fall behind that. */
interface Snapshot {
  readonly registerId: string;
  readonly height: number;
  /** Hash of docket height - 1; empty when unknown. */
  readonly headHash: string;
}

export type Mode = 'Running' | 'Paused' | 'Stopped';

interface ModeChange {
  readonly registerId: string;
  readonly mode: Mode;
}

/** A proven fault. A register that it halted stays halted after a restart. */
export interface LoggedEvidence {
  readonly registerId: string;
  readonly evidence: PeerEvidence;
  /** Absent in logs of earlier versions: such evidence only halts the register. */
  readonly proof?: Proof | undefined;
}

/** The start of a drain, which survives restarts; absent: not draining. */
export interface DrainChange {
  readonly sinceMs?: number;
}

export type LogRecord =
  | { readonly kind: 'transaction'; readonly value: PooledTransaction }
  | { readonly kind: 'own'; readonly value: OwnMessage }
  | { readonly kind: 'decided'; readonly value: DecidedDocket }
  | { readonly kind: 'stored'; readonly value: StoredDocket }
  | { readonly kind: 'tombstone'; readonly value: Tombstone }
  | { readonly kind: 'snapshot'; readonly value: Snapshot }
  | { readonly kind: 'mode'; readonly value: ModeChange }
  | { readonly kind: 'evidence'; readonly value: LoggedEvidence }
  | { readonly kind: 'drain'; readonly value: DrainChange };

/** A transaction in its log encoding. Most are already stored and never decoded. */
export interface LoggedTransaction {
  readonly registerId: string;
  readonly txId: string;
  readonly body: Uint8Array;
}

export type ReadRecord =
  | Exclude<LogRecord, { kind: 'transaction' }>
  | { readonly kind: 'transaction'; readonly value: LoggedTransaction };

type Kind = LogRecord['kind'];

/** Type numbers on disk. They must never change. */
const types: Readonly<Record<Kind, number>> = {
  transaction: 1,
  own: 2,
  decided: 3,
  stored: 4,
  tombstone: 5,
  snapshot: 6,
  mode: 7,
  evidence: 8,
  drain: 9,
};
const kinds = new Map(Object.entries(types).map(([kind, type]) => [type, kind]));

export function encodeRecord(record: LogRecord): Entry {
  const body =
    record.kind === 'transaction' ? encodeTransaction(record.value) : utf8(JSON.stringify(record.value));
  return { type: types[record.kind], body };
}

/** @throws AppError internal JOURNAL_DAMAGED for bytes that encodeRecord cannot have produced */
export function decodeRecord(entry: Entry): ReadRecord {
  const kind = kinds.get(entry.type);
  try {
    if (kind === 'transaction') return { kind, value: readTransaction(entry.body) };
    const text = fromUtf8(entry.body);
    if (kind === undefined || text === undefined) throw new RangeError(`entry type ${entry.type}`);
    // Written by encodeRecord of the same format version and protected by a checksum.
    return { kind, value: JSON.parse(text) } as ReadRecord;
  } catch (cause) {
    throw failure('JOURNAL_DAMAGED', { cause });
  }
}

const transactionHead = 76;

/**
 * form:u8 lane:u8 exclusive:u8 0:u8 addedAtMs:f64 expiresAtMs:f64 recordBytes:u32 0:u32 registerId:16 txId:32 record
 * payload
 */
function encodeTransaction(transaction: PooledTransaction): Uint8Array {
  const { record, payload } = transaction;
  const body = Buffer.allocUnsafe(transactionHead + record.length + payload.length);
  body.fill(0, 0, transactionHead);
  body.writeUInt8(transaction.payloadHashForm === 'jcs' ? 0 : 1, 0);
  body.writeUInt8(transaction.lane === 'control' ? 0 : 1, 1);
  body.writeUInt8(transaction.exclusivePredecessor ? 1 : 0, 2);
  body.writeDoubleLE(transaction.addedAtMs, 4);
  body.writeDoubleLE(transaction.expiresAtMs, 12);
  body.writeUInt32LE(record.length, 20);
  body.write(transaction.registerId, 28, 'hex');
  body.write(transaction.txId, 44, 'hex');
  body.set(record, transactionHead);
  body.set(payload, transactionHead + record.length);
  return body;
}

function readTransaction(bytes: Uint8Array): LoggedTransaction {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (body.length < transactionHead) throw new RangeError('a transaction is truncated');
  return { registerId: body.toString('hex', 28, 44), txId: body.toString('hex', 44, 76), body };
}

/** Decodes the transaction into buffers of its own. Throws AppError for a malformed record. */
export function decodeTransaction({ body: bytes }: LoggedTransaction): PooledTransaction {
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const recordEnd = transactionHead + body.readUInt32LE(20);
  const record = Uint8Array.from(body.subarray(transactionHead, recordEnd));
  const payload = Uint8Array.from(body.subarray(recordEnd));
  const parsed = parseRecord(record);
  const exclusivePredecessor = body.readUInt8(2) === 1;
  return {
    registerId: parsed.registerId,
    txId: parsed.txId,
    type: parsed.type,
    lane: body.readUInt8(1) === 0 ? 'control' : 'action',
    senderAddress: parsed.senderAddress,
    previousTransactionId: parsed.previousTransactionId,
    exclusivePredecessor,
    replayKey: exclusivePredecessor ? undefined : findReplayKey(parsed),
    record,
    leaf: recordLeaf(record),
    payload,
    payloadHashForm: body.readUInt8(0) === 0 ? 'jcs' : 'compact',
    bound: parsed.bound,
    algorithms: parsed.signatures.map(({ algorithm }) => algorithm),
    sizeBytes: record.length + payload.length,
    createdAt: parsed.createdAt,
    addedAtMs: body.readDoubleLE(4),
    expiresAtMs: body.readDoubleLE(12),
    step: findStep(parsed),
  };
}
