import { sha256Hex } from '#core/crypto/hash.ts';
import { canonicalBytes } from '#core/encoding/jcs.ts';
import { type JsonNode, type JsonObjectNode, rawText, scanJson, toValue } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import { validationError, validationViolation } from '#core/errors/validation-codes.ts';
import { failure } from '../../errors.ts';
import { parseSubmission } from '../../intake/verification/submission.ts';

/** Member names of the earlier transaction shape and their names in the generic submission. */
const names: Readonly<Record<string, string>> = {
  txId: 'TransactionId',
  registerId: 'RegisterId',
  blueprintId: 'BlueprintId',
  actionId: 'ActionId',
  payload: 'Payload',
  payloadHash: 'PayloadHash',
  timestamp: 'CreatedAt',
  expiresAt: 'ExpiresAt',
  previousTxId: 'PreviousTransactionId',
  priority: 'Priority',
  metadata: 'Metadata',
  recipients: 'Recipients',
};

/** A transaction of the earlier shape, rewritten as the generic submission. */
interface RewrittenSubmission {
  /** JSON text of the submission; the payload keeps its original text. */
  readonly text: string;
  readonly registerId: string;
}

/**
 * Rewrites `{transaction: {txId, registerId, senderAddress, payload, timestamp, signature, previousTxId}}`, the earlier
 * shape of a submission. The signature is `{publicKey, signatureValue, algorithm}`, since an address is only the hash of a
 * key and could not verify it. An absent `payloadHash` is computed over the payload's canonical JSON.
 * @throws AppError invalid with the violations, forbidden SENDER_NOT_AUTHORIZED when the key is not the sender's
 */
export function rewrite(body: string): RewrittenSubmission {
  const transaction = transactionOf(body);
  const members = transaction.members.flatMap(({ name, value }) => {
    const known = Object.hasOwn(names, name) ? names[name] : undefined;
    return known === undefined ? [] : [`"${known}":${rawText(value)}`];
  });
  const signature = memberOf(transaction, 'signature');
  if (signature !== undefined) members.push(`"Signatures":[${rawText(signature)}]`);
  const payload = memberOf(transaction, 'payload');
  if (payload !== undefined && memberOf(transaction, 'payloadHash') === undefined)
    members.push(`"PayloadHash":"${hashOf(payload)}"`);
  const text = `{${members.join(',')}}`;
  const { senderAddress, envelope } = parseSubmission(text);
  const sender = memberOf(transaction, 'senderAddress');
  if (sender === undefined) throw validationError([validationViolation('VAL_STRUCT_001', 'senderAddress')]);
  if (sender.kind !== 'string' || sender.value !== senderAddress) {
    const message = 'The key of the signature is not that of senderAddress';
    throw failure('SENDER_NOT_AUTHORIZED', { message });
  }
  return { text, registerId: envelope.registerId };
}

function transactionOf(body: string): JsonObjectNode {
  const node = scanJson(body);
  const transaction = node.kind === 'object' ? memberOf(node, 'transaction') : undefined;
  if (transaction?.kind === 'object') return transaction;
  throw validationError([validationViolation('VAL_STRUCT_001', 'transaction')]);
}

function memberOf(node: JsonObjectNode, name: string): JsonNode | undefined {
  return node.members.find((member) => member.name === name)?.value;
}

function hashOf(payload: JsonNode): string {
  try {
    return sha256Hex(canonicalBytes(toValue(payload)));
  } catch (error) {
    if (!isAppError(error)) throw error;
    throw validationError([validationViolation('VAL_STRUCT_012', 'payload', error.message)]);
  }
}
