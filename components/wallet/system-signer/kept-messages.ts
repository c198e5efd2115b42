/** A message at a position of the guard: the step, the digest of its bytes, and its signature. */
export interface KeptMessage {
  /** 1 proposal, 2 prevote, 3 precommit */
  readonly step: number;
  /** SHA-256 */
  readonly digest: Buffer;
  /** Ed25519 */
  readonly signature: Buffer;
}

const digestBytes = 32;
const signatureBytes = 64;
const entryBytes = 1 + digestBytes + signatureBytes;

/**
 * The earlier messages of a batch as a column: the digest of the last message, then step:1 digest:32 signature:64 of each.
 * The digest binds them to the row, because a process of an earlier version moves a row on without touching this column.
 *
 * @returns null for a batch of one
 */
export function encodeEarlier(messages: readonly KeptMessage[]): Buffer | null {
  const last = messages.at(-1);
  if (last === undefined || messages.length === 1) return null;
  const entries = messages.slice(0, -1).flatMap(({ step, digest, signature }) => {
    return [Buffer.of(step), digest, signature];
  });
  return Buffer.concat([last.digest, ...entries]);
}

/** The messages that `encodeEarlier` wrote for a row with this last message; none when they belong to another one. */
export function decodeEarlier(earlier: Buffer | null, lastDigest: Buffer): KeptMessage[] {
  if (earlier === null || !earlier.subarray(0, digestBytes).equals(lastDigest)) return [];
  const kept: KeptMessage[] = [];
  for (let at = digestBytes; at + entryBytes <= earlier.length; at += entryBytes) {
    const signatureAt = at + 1 + digestBytes;
    kept.push({
      step: earlier.readUInt8(at),
      digest: earlier.subarray(at + 1, signatureAt),
      signature: earlier.subarray(signatureAt, at + entryBytes),
    });
  }
  return kept;
}
