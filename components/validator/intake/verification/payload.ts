import { sha256Hex } from '#core/crypto/hash.ts';
import { isUnescaped, type JsonNode, minify, rawText } from '#core/encoding/json.ts';
import { compareCodeUnits, utf8 } from '#core/encoding/text.ts';
import { matchPayload, type PayloadMatch } from '#core/ledger/transaction.ts';

/**
 * The payload bytes that the declared hash covers. Most payloads arrive in canonical form and are hashed as received; only
 * others are serialised again. The result always equals that of `matchPayload`.
 */
export function findPayloadBytes(payload: JsonNode, declaredHash: string): PayloadMatch | undefined {
  if (!isCanonical(payload)) return matchPayload(payload, declaredHash);
  const bytes = utf8(minify(payload));
  return sha256Hex(bytes) === declaredHash ? { bytes, form: 'jcs' } : undefined;
}

/** Whether the value without white space is its own canonical form; false also when that is not cheap to tell. */
function isCanonical(node: JsonNode): boolean {
  switch (node.kind) {
    case 'object':
      return node.members.every((member, index) => {
        const before = node.members[index - 1];
        const inOrder = before === undefined || compareCodeUnits(before.name, member.name) < 0;
        return inOrder && member.escapedName === undefined && isCanonical(member.value);
      });
    case 'array':
      return node.items.every(isCanonical);
    case 'string':
      return isUnescaped(node);
    case 'number':
      return rawText(node) === String(node.value);
    default:
      return true;
  }
}
