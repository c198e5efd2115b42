import { sha256 } from '../crypto/hash.ts';
import type { Verifier } from '../crypto/verify.ts';
import { decodeBase64Any, encodeBase64 } from '../encoding/base64.ts';
import { encodeHex } from '../encoding/hex.ts';
import { concatBytes, equalBytes, utf8 } from '../encoding/text.ts';
import { AppError, isAppError } from '../errors/errors.ts';

/** Signature kinds of C2SP signed-note: 1 is Ed25519 over the text, 4 is cosignature/v1 with its time. */
export const NOTE_KINDS = { log: 1, cosignature: 4 } as const;
type NoteKind = (typeof NOTE_KINDS)[keyof typeof NOTE_KINDS];

/** A signer of notes. */
export interface NoteKey {
  /** Without white space and `+`. */
  readonly name: string;
  readonly kind: NoteKind;
  /** Ed25519, 32 bytes. */
  readonly publicKey: Uint8Array;
}

export interface NoteSignature {
  readonly name: string;
  /** First four bytes of SHA-256(name, newline, kind, key). */
  readonly keyHash: Uint8Array;
  /** The bytes after the key hash: 64 of signature, or 8 of time and 64 of signature for a cosignature. */
  readonly blob: Uint8Array;
}

interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  /** 32 bytes. */
  readonly rootHash: Uint8Array;
}

export interface ParsedCheckpoint extends Checkpoint {
  /** The signed text: three lines, the last newline included. */
  readonly body: string;
  readonly signatures: readonly NoteSignature[];
}

const DASH = '\u2014';

function refuse(reason: string): never {
  throw new AppError('invalid', 'INVALID_CHECKPOINT', `Checkpoint: ${reason}`);
}

/** The origin of a register's checkpoints. */
export function checkpointOrigin(installation: string, registerId: string): string {
  return `${installation}/registers/${registerId}`;
}

/**
 * The three lines of a C2SP tlog-checkpoint.
 * @throws AppError invalid INVALID_CHECKPOINT for an empty or broken origin, size or root
 */
export function checkpointBody({ origin, size, rootHash }: Checkpoint): string {
  if (origin === '' || /[\r\n]/.test(origin)) refuse('origin is not one line');
  if (!Number.isSafeInteger(size) || size < 0 || rootHash.length !== 32) refuse('size or root is malformed');
  return `${origin}\n${size}\n${encodeBase64(rootHash)}\n`;
}

/** Key hash: the four bytes by which a signature line refers to its key. */
export function noteKeyHash({ name, kind, publicKey }: NoteKey): Uint8Array {
  return sha256(concatBytes([utf8(`${name}\n`), Uint8Array.of(kind), publicKey])).subarray(0, 4);
}

/** The verifier key in C2SP form: `name+hash+base64`. */
export function verifierKey(key: NoteKey): string {
  const { name, kind, publicKey } = key;
  return `${name}+${encodeHex(noteKeyHash(key))}+${encodeBase64(concatBytes([Uint8Array.of(kind), publicKey]))}`;
}

/**
 * Parses a verifier key.
 * @throws AppError invalid INVALID_CHECKPOINT
 */
export function parseVerifierKey(text: string): NoteKey {
  const match = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(text);
  if (match === null) return refuse('verifier key is malformed');
  const bytes = decodeBase64Any(match[3] ?? '');
  const kind = Object.values(NOTE_KINDS).find((each) => each === bytes[0]);
  if (kind === undefined || bytes.length !== 33) return refuse('verifier key is of an unknown kind');
  const key: NoteKey = { name: match[1] ?? '', kind, publicKey: bytes.subarray(1) };
  return encodeHex(noteKeyHash(key)) === match[2] ? key : refuse('verifier key has another hash');
}

/** One signature line of a note, newline included. */
export function noteLine(key: NoteKey, blob: Uint8Array): string {
  if (key.name === '' || /[\s+]/.test(key.name)) refuse('name of a signer holds white space or +');
  return `${DASH} ${key.name} ${encodeBase64(concatBytes([noteKeyHash(key), blob]))}\n`;
}

/** The bytes that a C2SP cosignature signs; the time is seconds since the epoch. */
export function cosignatureBytes(body: string, timeSeconds: number): Uint8Array {
  return utf8(`cosignature/v1\ntime ${timeSeconds}\n${body}`);
}

/** The bytes after the key hash of a cosignature line: eight bytes of time, then the signature. */
export function cosignatureBlob(timeSeconds: number, signature: Uint8Array): Uint8Array {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(timeSeconds));
  return concatBytes([time, signature]);
}

/** A checkpoint as it is served: body, empty line, signature lines. */
export function checkpointNote(body: string, lines: readonly string[]): string {
  return `${body}\n${lines.join('')}`;
}

function parseLine(line: string): NoteSignature {
  const match = /^\u2014 ([^\s+]+) ([A-Za-z0-9+/=]+)$/u.exec(line);
  if (match === null) return refuse('signature line is malformed');
  const bytes = decodeBase64Any(match[2] ?? '');
  if (bytes.length < 5) return refuse('signature line is too short');
  return { name: match[1] ?? '', keyHash: bytes.subarray(0, 4), blob: bytes.subarray(4) };
}

/**
 * The parts of a signed checkpoint (C2SP tlog-checkpoint and signed-note). No signature is verified.
 * @throws AppError invalid INVALID_CHECKPOINT or INVALID_BASE64
 */
export function parseCheckpoint(note: string): ParsedCheckpoint {
  const end = note.indexOf('\n\n');
  if (end < 0 || !note.endsWith('\n')) return refuse('no signatures');
  const body = note.slice(0, end + 1);
  const [origin, sizeText, rootText, ...more] = body.slice(0, -1).split('\n');
  if (
    origin === undefined ||
    origin === '' ||
    sizeText === undefined ||
    rootText === undefined ||
    more.length > 0
  ) {
    return refuse('the body has not three lines');
  }
  const size = Number(sizeText);
  const rootHash = decodeBase64Any(rootText);
  const plain = /^(0|[1-9][0-9]*)$/.test(sizeText) && Number.isSafeInteger(size);
  if (!plain || rootHash.length !== 32 || encodeBase64(rootHash) !== rootText)
    return refuse('size or root is malformed');
  const lines = note.slice(end + 2, -1).split('\n');
  return { origin, size, rootHash, body, signatures: lines.map(parseLine) };
}

function verifyLine(verifier: Verifier, body: string, key: NoteKey, blob: Uint8Array): boolean {
  const base = { algorithm: 'ED25519', publicKey: key.publicKey } as const;
  if (key.kind === NOTE_KINDS.log) return verifier.verify({ ...base, message: utf8(body), signature: blob });
  if (blob.length !== 72) return false;
  const seconds = Buffer.from(blob.subarray(0, 8)).readBigUInt64BE();
  if (seconds > BigInt(Number.MAX_SAFE_INTEGER)) return false;
  const message = cosignatureBytes(body, Number(seconds));
  return verifier.verify({ ...base, message, signature: blob.subarray(8) });
}

/**
 * Whether the checkpoint has a valid line of that key. Lines of other keys are ignored, as C2SP demands. A line that
 * names the key and does not verify is refused.
 */
export function verifyCheckpoint(verifier: Verifier, checkpoint: ParsedCheckpoint, key: NoteKey): boolean {
  const keyHash = noteKeyHash(key);
  const claims = checkpoint.signatures.filter(
    (each) => each.name === key.name && equalBytes(each.keyHash, keyHash),
  );
  return claims.length > 0 && claims.every((each) => verifyLine(verifier, checkpoint.body, key, each.blob));
}

/** Like parseCheckpoint, and undefined for malformed text. */
export function findCheckpoint(note: string): ParsedCheckpoint | undefined {
  try {
    return parseCheckpoint(note);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}
