import { encodeBase64Url } from '../../encoding/base64.ts';
import type { CborNode } from '../../encoding/cbor.ts';
import type { JsonObject } from '../../encoding/json.ts';
import { refusePresentation } from '../presentation.ts';

function membersOf(entries: Extract<CborNode, { kind: 'map' }>['entries']): JsonObject {
  const members = new Map<string, unknown>();
  for (const { key, value } of entries) {
    const name = 'value' in key ? String(key.value) : '';
    if (members.has(name)) refusePresentation('FORMAT', 'A map has a number and its digits as keys');
    members.set(name, claimOf(value));
  }
  // Object.fromEntries defines members, so that a member named __proto__ is a member.
  return Object.fromEntries(members);
}

/**
 * The value of an element as JSON data: byte strings as base64url, integers beyond 53 bits as decimal text, tagged values
 * (dates, times) as what is tagged, `undefined` as null.
 * @throws AppError unprocessable FORMAT for numbers that are not finite, and maps with a number and its digits as keys
 */
export function claimOf(node: CborNode): unknown {
  switch (node.kind) {
    case 'integer': {
      const value = Number(node.value);
      return Number.isSafeInteger(value) ? value : String(node.value);
    }
    case 'float':
      return Number.isFinite(node.value)
        ? node.value
        : refusePresentation('FORMAT', 'A number is not finite');
    case 'bytes':
      return encodeBase64Url(node.value);
    case 'simple':
      return node.value ?? null;
    case 'text':
      return node.value;
    case 'array':
      return node.items.map(claimOf);
    case 'map':
      return membersOf(node.entries);
    case 'tag':
      return claimOf(node.inner);
  }
}
