import { createHash } from 'node:crypto';

/** UUID namespace of the ids of inbox events; never changed. */
const namespace = 'b1d0c7a2-5f3e-4c58-9a64-2e6f0c9d7b13';

/** A UUID of version 5 (RFC 9562 section 5.5): the same name gives the same id, in any language. */
export function nameUuid(name: string, within: string): string {
  const bytes = createHash('sha1')
    .update(Buffer.from(within.replaceAll('-', ''), 'hex'))
    .update(name, 'utf8')
    .digest()
    .subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/**
 * Identifies an event of a person, so that a repeated submission is one entry (specification document 1, section 2).
 */
export function sourceEventId(fact: {
  readonly category: string;
  readonly eventKey: string;
  readonly platformUserId: string;
  /** Distinguishes events of the same kind for the same person. */
  readonly naturalKey: string;
}): string {
  const { category, eventKey, platformUserId, naturalKey } = fact;
  return nameUuid(`inbox.${category.toLowerCase()}.${eventKey}:${platformUserId}:${naturalKey}`, namespace);
}
