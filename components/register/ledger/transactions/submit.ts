import { isWalletAddress } from '#core/crypto/address.ts';
import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { decodeBase64Any, encodeBase64 } from '#core/encoding/base64.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { rawText, scanJson, toValue } from '#core/encoding/json.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import { boundTxId, signingDigest, type TransactionEnvelope } from '#core/ledger/transaction.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Submission, signatureOf, submissionText } from '../../clients/submission.ts';
import type { SubmitAnswer, Validators } from '../../clients/validators.ts';
import type { Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import { askOne, type FindMembers } from '../../registers/directory/ask.ts';
import type { Register } from '../../registers/state/store.ts';

interface SubmitRequest {
  readonly transactionType: string;
  readonly senderAddress: string;
  /** base64 */
  readonly payload: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly recipients?: readonly string[] | undefined;
  readonly previousTransactionId?: string | undefined;
  readonly expiresAt?: string | undefined;
  readonly transactionId?: string | undefined;
  readonly payloadHash?: string | undefined;
  readonly createdAt?: string | undefined;
  readonly signatures?: readonly GivenSignature[] | undefined;
}

interface GivenSignature {
  readonly publicKey: string;
  readonly signatureValue: string;
  readonly algorithm: string;
}

interface SendDeps {
  readonly validators: Validators;
  readonly findMembers: FindMembers;
}

export interface SubmitDeps extends SendDeps {
  readonly wallets: Wallets;
  readonly clock: Clock;
}

/** Maximum record size of any register; a payload that certainly exceeds it is refused before anything is signed. */
const maxTransactionBytes = 524_288;

/** Payload bytes as JSON text: unchanged if they are JSON, else wrapped. */
export function payloadTextOf(base64: string): { readonly text: string; readonly canonical: string } {
  const bytes = decodePayload(base64);
  if (bytes.length > maxTransactionBytes) throw refusal('TRANSACTION_TOO_LARGE');
  try {
    const node = scanJson(bytes);
    return { text: rawText(node), canonical: canonicalJson(toValue(node)) };
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    const wrapped = canonicalJson({ contentType: 'application/octet-stream', data: encodeBase64(bytes) });
    return { text: wrapped, canonical: wrapped };
  }
}

function decodePayload(base64: string): Uint8Array {
  try {
    return decodeBase64Any(base64);
  } catch (error) {
    throw new AppError('invalid', 'INVALID_REQUEST', 'payload is not base64.', { cause: error });
  }
}

function envelopeOf(register: Register, request: SubmitRequest, facts: { hash: string; createdAt: string }) {
  const { metadata, transactionType, recipients } = request;
  const label =
    transactionType === 'Action' || metadata['Type'] !== undefined ? {} : { Type: transactionType };
  const envelope: TransactionEnvelope = {
    registerId: register.registerId,
    blueprintId: metadata['blueprintId'],
    actionId: metadata['actionId'],
    type: 'Action',
    payloadHash: facts.hash,
    previousTransactionId: request.previousTransactionId?.toLowerCase(),
    createdAt: facts.createdAt,
    expiresAt: request.expiresAt,
    recipients: recipients !== undefined && recipients.length > 0 ? recipients : undefined,
    metadata: { ...metadata, ...label },
  };
  return envelope;
}

/** Signs as the sender, if the wallet service allows it for the caller. */
async function signForCaller(
  deps: SubmitDeps,
  register: Register,
  request: SubmitRequest,
  subjectToken: string,
): Promise<Submission> {
  const { senderAddress } = request;
  const key = isWalletAddress(senderAddress) ? await deps.wallets.findKey(senderAddress) : undefined;
  if (key === undefined || !isAlgorithm(key.algorithm)) throw refusal('SENDER_NOT_AUTHORIZED');
  const { canonical } = payloadTextOf(request.payload);
  const createdAt = formatLedgerTimestamp(deps.clock.nowMicros());
  const envelope = envelopeOf(register, request, { hash: sha256Hex(canonical), createdAt });
  const txId = boundTxId(envelope, [key.publicKey]);
  const digest = signingDigest(txId, envelope.payloadHash);
  const signed = await deps.wallets
    .signDigest({ walletAddress: senderAddress, digest, derivationContext: '', subjectToken })
    .catch((error: unknown) => {
      if (isAppError(error, 'forbidden') || isAppError(error, 'not_found')) {
        throw refusal('SENDER_NOT_AUTHORIZED', { cause: error });
      }
      throw error;
    });
  const { publicKey, algorithm } = key;
  return {
    envelope,
    txId,
    payloadText: canonical,
    signatures: [signatureOf({ publicKey, algorithm }, signed.signature)],
  };
}

/** A submission that was signed outside this service: sent unchanged, and judged by the validator. */
function readySigned(
  register: Register,
  request: SubmitRequest,
  given: readonly GivenSignature[],
): Submission {
  const { transactionId, createdAt, payloadHash } = request;
  if (transactionId === undefined || createdAt === undefined || payloadHash === undefined) {
    throw new AppError(
      'invalid',
      'INVALID_REQUEST',
      'A signed transaction must also name transactionId, payloadHash and createdAt.',
    );
  }
  const signatures = given.map(({ publicKey, signatureValue, algorithm }) => {
    if (isAlgorithm(algorithm)) return { publicKey, signatureValue, algorithm };
    throw new AppError('invalid', 'VAL_SIG_001', 'The signature algorithm is unknown or not enabled.');
  });
  const { text } = payloadTextOf(request.payload);
  const envelope = envelopeOf(register, request, { hash: payloadHash.toLowerCase(), createdAt });
  return { envelope, txId: transactionId.toLowerCase(), payloadText: text, signatures };
}

interface Submitted {
  readonly txId: string;
  readonly answer: SubmitAnswer;
}

/**
 * Turns the client's transaction into a submission, signed by the wallet service unless it is signed already, and sends
 * it to a validator of the register, whose answer is returned.
 */
export async function submit(
  deps: SubmitDeps,
  register: Register,
  request: SubmitRequest,
  subjectToken: string,
): Promise<Submitted> {
  const { signatures } = request;
  const submission =
    signatures === undefined || signatures.length === 0
      ? await signForCaller(deps, register, request, subjectToken)
      : readySigned(register, request, signatures);
  const answer = await sendSubmission(deps, register, Buffer.from(submissionText(submission)));
  return { txId: submission.txId, answer };
}

/**
 * Sends the JSON text of a submission to a validator of the register, whose answer is returned.
 * @throws AppError too_large TRANSACTION_TOO_LARGE, unavailable VALIDATOR_UNAVAILABLE
 */
export async function sendSubmission(
  deps: SendDeps,
  register: Pick<Register, 'registerNo'>,
  bytes: Uint8Array,
): Promise<SubmitAnswer> {
  if (bytes.length > maxTransactionBytes * 2) throw refusal('TRANSACTION_TOO_LARGE');
  const members = await deps.findMembers(register.registerNo);
  // A validator that cannot accept it now (stopped, halted, its log or its view of the ledger broken) does not decide
  // for the others.
  const final = (answer: SubmitAnswer) => answer.status !== 503;
  return askOne(members, (at) => deps.validators.submit(at, bytes), final);
}
