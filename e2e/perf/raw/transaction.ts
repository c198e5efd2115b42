import { hash } from 'node:crypto';
import { checkBytes } from './verifiers.ts';

/** A transaction between raw programs: id of 32 bytes, check of 128, length of 4, payload. */
export interface RawTransaction {
  readonly id: Buffer;
  /** Key, signature and signed digest. */
  readonly check: Buffer;
  readonly body: Buffer;
}

const idBytes = 32;

export function packTransactions(transactions: readonly RawTransaction[]): Buffer {
  const parts = transactions.flatMap(({ id, check, body }) => {
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32LE(body.length);
    return [id, check, length, body];
  });
  return Buffer.concat(parts);
}

export function unpackTransactions(frame: Buffer): RawTransaction[] {
  const transactions: RawTransaction[] = [];
  for (let at = 0; at < frame.length; ) {
    const id = frame.subarray(at, at + idBytes);
    const check = frame.subarray(at + idBytes, at + idBytes + checkBytes);
    const start = at + idBytes + checkBytes + 4;
    const end = start + frame.readUInt32LE(start - 4);
    transactions.push({ id, check, body: frame.subarray(start, end) });
    at = end;
  }
  return transactions;
}

/** Parses a client's submission: the payload's hash, the signed digest, and the signer. */
export function readSubmission(text: string): RawTransaction {
  const submission = JSON.parse(text);
  const id = Buffer.from(submission.TransactionId, 'hex');
  const body = Buffer.from(JSON.stringify(submission.Payload));
  const [signature] = submission.Signatures;
  const check = Buffer.concat([
    Buffer.from(signature.PublicKey, 'base64'),
    Buffer.from(signature.SignatureValue, 'base64'),
    signedDigest(id, body),
  ]);
  if (check.length !== checkBytes) throw new RangeError('a signature has the wrong size');
  return { id, check, body };
}

/** Judges that a transaction from another member is bound to its payload, before its signature is verified. */
export function assertBound({ id, check, body }: RawTransaction): void {
  if (!check.subarray(96).equals(signedDigest(id, body))) throw new Error('a payload is not the signed one');
}

function signedDigest(id: Buffer, body: Buffer): Buffer {
  return hash('sha256', `${id.toString('hex')}:${hash('sha256', body, 'hex')}`, 'buffer');
}
