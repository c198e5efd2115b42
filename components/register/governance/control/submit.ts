import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { sha256Hex } from '#core/crypto/hash.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import {
  boundTxId,
  signingDigest,
  type TransactionEnvelope,
  type TransactionSignature,
} from '#core/ledger/transaction.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Submission, signatureOf, submissionText } from '../../clients/submission.ts';
import type { SubmitAnswer, Validators } from '../../clients/validators.ts';
import type { Signed, Wallets } from '../../clients/wallets.ts';
import { refusal } from '../../errors.ts';
import { askOne, type FindMembers } from '../../registers/directory/ask.ts';
import type { KeyFacts } from '../../registers/state/store.ts';

export interface ControlDeps {
  readonly wallets: Wallets;
  readonly validators: Pick<Validators, 'submit'>;
  readonly findMembers: FindMembers;
  readonly clock: Clock;
  /** Called with the id before the transaction is sent to a validator, so that it can be recorded first. */
  readonly onSigned?: ((txId: string) => Promise<void>) | undefined;
}

/** An unsigned control transaction. */
interface ControlDraft {
  readonly blueprintId: string;
  readonly actionId: string;
  readonly payload: unknown;
  readonly metadata: Readonly<Record<string, string>>;
  readonly expiresAt?: string | undefined;
  /** derived from the envelope when absent */
  readonly transactionId?: string | undefined;
  /** now when absent */
  readonly createdAt?: string | undefined;
}

/** A control transaction that was signed outside this service. */
interface SignedControl extends ControlDraft {
  readonly transactionId: string;
  readonly createdAt: string;
  readonly previousTransactionId?: string | undefined;
  readonly signatures: readonly TransactionSignature[];
}

/** A wallet that the caller may use, with its key on the roster. */
export interface WalletSigner {
  readonly walletAddress: string;
  /** empty for the wallet's own key */
  readonly derivationContext: string;
  readonly key: KeyFacts;
  readonly token: string;
}

/** The signer: the installation, where the register's rules allow it, or a roster member. */
export type ControlSigner = 'system' | WalletSigner;

export interface SubmittedControl {
  readonly txId: string;
  /** of the validator; 200 when it accepted */
  readonly answer: SubmitAnswer;
}

interface Target {
  readonly registerNo: number;
  readonly registerId: string;
}

function envelopeOf(registerId: string, draft: ControlDraft, hash: string, createdAt: string) {
  const envelope: TransactionEnvelope = {
    registerId,
    blueprintId: draft.blueprintId,
    actionId: draft.actionId,
    type: 'Control',
    payloadHash: hash,
    createdAt,
    expiresAt: draft.expiresAt,
    metadata: draft.metadata,
  };
  return envelope;
}

/**
 * Signs 32 bytes with the wallet of a member.
 * @throws AppError forbidden SENDER_NOT_AUTHORIZED
 */
async function signAs(wallets: Wallets, signer: WalletSigner, digest: Uint8Array): Promise<Signed> {
  const { walletAddress, derivationContext, token: subjectToken } = signer;
  try {
    const signed = await wallets.signDigest({ walletAddress, digest, derivationContext, subjectToken });
    if (signed.key.publicKey === signer.key.publicKey) return signed;
  } catch (error) {
    const isTheirs = !isAppError(error, 'forbidden') && !isAppError(error, 'not_found');
    throw isTheirs ? error : refusal('SENDER_NOT_AUTHORIZED', { cause: error });
  }
  throw refusal('SENDER_NOT_AUTHORIZED');
}

async function sign(deps: ControlDeps, target: Target, draft: ControlDraft, signer: ControlSigner) {
  const { wallets } = deps;
  const { publicKey, algorithm } = signer === 'system' ? await wallets.systemKey() : signer.key;
  if (!isAlgorithm(algorithm))
    throw new AppError('internal', 'INTERNAL_ERROR', 'The signing key has no known algorithm.');
  const { registerId } = target;
  const payloadText = canonicalJson(draft.payload);
  const payloadHash = sha256Hex(payloadText);
  const createdAt = draft.createdAt ?? formatLedgerTimestamp(deps.clock.nowMicros());
  const envelope = envelopeOf(registerId, draft, payloadHash, createdAt);
  const transactionId = draft.transactionId ?? boundTxId(envelope, [publicKey]);
  const request = { registerId, transactionId, payloadHash, transactionType: 'Control' };
  const { signature } =
    signer === 'system'
      ? await wallets.signControl(request)
      : await signAs(wallets, signer, signingDigest(transactionId, payloadHash));
  const signatures = [signatureOf({ publicKey, algorithm }, signature)];
  return { envelope, txId: transactionId, payloadText, signatures } satisfies Submission;
}

async function sendToValidator(
  deps: ControlDeps,
  target: Target,
  submission: Submission,
): Promise<SubmittedControl> {
  const bytes = Buffer.from(submissionText(submission));
  const members = await deps.findMembers(target.registerNo);
  const final = (answer: SubmitAnswer) => answer.status !== 503;
  const answer = await askOne(members, (at) => deps.validators.submit(at, bytes), final);
  return { txId: submission.txId, answer };
}

/** Signs a control transaction and submits it to a validator of the register, whose verdict is returned. */
export async function submitControl(
  deps: ControlDeps,
  target: Target,
  draft: ControlDraft,
  signer: ControlSigner,
): Promise<SubmittedControl> {
  const submission = await sign(deps, target, draft, signer);
  await deps.onSigned?.(submission.txId);
  return sendToValidator(deps, target, submission);
}

/** Submits a control transaction that was signed outside this service, unchanged. */
export async function submitSigned(
  deps: ControlDeps,
  target: Target,
  control: SignedControl,
): Promise<SubmittedControl> {
  const { transactionId, createdAt, previousTransactionId, signatures } = control;
  const payloadText = canonicalJson(control.payload);
  const envelope = {
    ...envelopeOf(target.registerId, control, sha256Hex(payloadText), createdAt),
    previousTransactionId,
  };
  return sendToValidator(deps, target, { envelope, txId: transactionId, payloadText, signatures });
}
