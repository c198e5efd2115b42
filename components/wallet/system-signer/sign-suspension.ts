import { encodeBase64 } from '#core/encoding/base64.ts';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { AppError, genericCode, isAppError } from '#core/errors/errors.ts';
import { memberDid } from '#core/ledger/did.ts';
import {
  MAX_OPERATION_BYTES,
  type OperationPayload,
  operationPayloadSchema,
} from '#core/ledger/governance/operation.ts';
import { suspensionTransaction } from '#core/ledger/governance/suspension.ts';
import { parseRegisterId } from '#core/ledger/register-id.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import { DOCKET_SIGNING } from '../custody/contexts.ts';
import { invalid } from '../errors.ts';
import { assertNewest, type OpenedSigner, type SignConsensusDeps } from './sign-consensus.ts';
import type { SignatureCap } from './store.ts';

/** Bounds the operation with its hashes and envelope. */
const maxPayloadBytes = MAX_OPERATION_BYTES + 1024;
/** One proposal is enough for a validator; further signatures serve retries after a lost message. */
const suspensionCap: SignatureCap = { bucket: `${DOCKET_SIGNING}/suspension`, limit: 12, windowSeconds: 60 };

/**
 * Signs the proposal to the roster of a register to suspend another validator for two conflicting signed messages. It
 * is the only transaction that a validator's key signs. Id and digest are computed here from the payload, which must be
 * that proposal and name this validator as its proposer. The audit row is written before the signature is returned.
 * @throws AppError invalid INVALID_REQUEST, rate_limited RATE_LIMITED, conflict SIGNER_FENCED
 */
export async function signSuspension(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  request: { readonly registerId: string; readonly payload: Uint8Array },
): Promise<Uint8Array> {
  const registerId = parseRegisterId(request.registerId);
  const payload = readProposal(request.payload, opened);
  const { signer } = opened.key;
  const { txId, envelope } = suspensionTransaction(registerId, payload, encodeBase64(signer.publicKey));
  await assertNewest(deps, opened);
  const attempt = {
    caller: opened.caller,
    registerId,
    transactionType: 'Suspension',
    transactionId: txId,
    derivationPath: DOCKET_SIGNING,
  };
  if ((await deps.store.takeAudited(attempt, suspensionCap)) === 'Signed') {
    deps.events.signed('suspension');
    return signer.signDigest(signingDigest(txId, envelope.payloadHash));
  }
  deps.events.refused('RATE_LIMITED');
  const retryAfterSeconds = await deps.store.retryAfterSeconds(registerId, suspensionCap);
  throw new AppError(
    'rate_limited',
    genericCode('rate_limited'),
    'too many suspension proposals for this register; try again later',
    {
      retryAfterSeconds,
    },
  );
}

function readProposal(bytes: Uint8Array, { validatorId, key }: OpenedSigner): OperationPayload {
  if (bytes.length > maxPayloadBytes) throw invalid('the proposal is too large');
  const result = operationPayloadSchema.safeParse(readJson(bytes));
  if (!result.success) throw invalid('the payload is not an operation proposal');
  const { operation } = result.data;
  const isSuspension =
    operation.operationType === 'suspend-validator' && operation.evidence?.kind === 'double-sign';
  if (!isSuspension)
    throw invalid('a validator may only propose a suspension for two conflicting signed messages');
  if (operation.validatorId === validatorId) throw invalid('a validator may not propose its own suspension');
  if (operation.proposerDid !== memberDid(key.address)) throw invalid('the proposer is not this validator');
  if (operation.approvalSignatures !== undefined) throw invalid('the proposal must not carry approvals');
  return result.data;
}

function readJson(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) throw invalid('the payload is not JSON');
    throw error;
  }
}
