import { sha256Hex } from '#core/crypto/hash.ts';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import { AppError, genericCode, isAppError } from '#core/errors/errors.ts';
import { checkpointBody, checkpointOrigin } from '#core/ledger/checkpoint.ts';
import { memberDid } from '#core/ledger/did.ts';
import { attestationBytes, attestationDigest } from '#core/ledger/owner-attestation.ts';
import { parseRegisterId, parseTxId } from '#core/ledger/register-id.ts';
import { signingDigest } from '#core/ledger/transaction.ts';
import type { Logger } from '#kit/log/log.ts';
import { REGISTER_CONTROL } from '../custody/contexts.ts';
import { invalid, refusal, type WalletErrorCode } from '../errors.ts';
import type { SignerEvents } from './events.ts';
import { controlKey, type SystemKey, type SystemKeyDeps } from './keys.ts';
import {
  judgeSystemKeyReading,
  judgeSystemSigning,
  type SigningAttempt,
  type SigningCaller,
  type SigningRefusal,
} from './rules.ts';
import type { SignatureCap, SignerStore } from './store.ts';

export interface SignControlDeps extends SystemKeyDeps {
  readonly store: SignerStore;
  readonly events: SignerEvents;
  readonly log: Logger;
  readonly installation: string;
  readonly controlPerMinute: number;
  readonly checkpointsPerMinute: number;
}

interface ControlRequest {
  readonly registerId: string;
  readonly transactionId: string;
  readonly payloadHash: string;
  readonly derivationPath: string;
  readonly transactionType: string;
}

interface SystemSignature {
  readonly signature: Uint8Array;
  readonly key: SystemKey;
}

const CONTROL_TYPES: readonly string[] = ['Genesis', 'Control'];
const windowSeconds = 60;

/**
 * Signs a genesis or control transaction with `platform:register-control`. The digest is computed here from the
 * transaction id and payload hash. The audit row of every outcome is written before the answer.
 */
export async function signControl(
  deps: SignControlDeps,
  caller: SigningCaller,
  request: ControlRequest,
): Promise<SystemSignature> {
  const attempt = { caller, ...request };
  const cap = capOf(REGISTER_CONTROL, deps.controlPerMinute);
  return release(deps, attempt, cap, () => {
    if (!CONTROL_TYPES.includes(request.transactionType))
      throw invalid('transactionType is not Genesis or Control');
    const registerId = parseRegisterId(request.registerId);
    const transactionId = parseTxId(request.transactionId);
    const payloadHash = request.payloadHash.toLowerCase();
    if (!/^[0-9a-f]{64}$/.test(payloadHash)) throw invalid('payloadHash is not a SHA-256 in hexadecimal');
    return { registerId, transactionId, digest: signingDigest(transactionId, payloadHash) };
  });
}

/** A register that the installation is going to own, before its genesis. */
interface OwnershipRequest {
  readonly registerId: string;
  readonly registerName: string;
  readonly grantedAt: string;
}

/**
 * Signs that the installation takes the role of the owner of a register. The attestation is built here, so its subject
 * is always the control key itself.
 */
export async function signOwnership(
  deps: SignControlDeps,
  caller: SigningCaller,
  request: OwnershipRequest,
): Promise<SystemSignature> {
  const attempt = {
    caller,
    registerId: request.registerId,
    transactionType: 'Ownership',
    transactionId: '',
    derivationPath: REGISTER_CONTROL,
  };
  const cap = capOf(REGISTER_CONTROL, deps.controlPerMinute);
  return release(deps, attempt, cap, async () => {
    const { registerName, grantedAt } = request;
    const registerId = parseRegisterId(request.registerId);
    const isName = /^[^\p{Cc}]{1,128}$/u.test(registerName) && registerName.isWellFormed();
    if (!isName) throw invalid('registerName is not the title of a register');
    if (findTimestamp(grantedAt) === undefined) throw invalid('grantedAt is not a timestamp');
    const subject = memberDid((await controlKey(deps)).address);
    const bytes = attestationBytes({ role: 'Owner', subject, registerId, registerName, grantedAt });
    const digest = attestationDigest(bytes);
    return { registerId, transactionId: encodeHex(digest), digest };
  });
}

/**
 * Signs the three lines of a checkpoint as the register's transparency log. The key signs the checkpoint of the named
 * register of this installation and no other text.
 */
export async function signCheckpoint(
  deps: SignControlDeps,
  caller: SigningCaller,
  request: { readonly registerId: string; readonly body: string },
): Promise<SystemSignature> {
  const attempt = {
    caller,
    registerId: request.registerId,
    transactionType: 'Checkpoint',
    transactionId: sha256Hex(request.body),
    derivationPath: REGISTER_CONTROL,
  };
  const cap = capOf(`${REGISTER_CONTROL}/checkpoint`, deps.checkpointsPerMinute);
  return release(deps, attempt, cap, () => {
    const registerId = parseRegisterId(request.registerId);
    assertCheckpointOf(checkpointOrigin(deps.installation, registerId), request.body);
    return { registerId, transactionId: attempt.transactionId, message: Buffer.from(request.body) };
  });
}

const CHECKPOINT_BODY = /^([^\r\n]+)\n(0|[1-9][0-9]{0,15})\n([A-Za-z0-9+/]{43}=)\n$/;

function assertCheckpointOf(origin: string, body: string): void {
  const [, ...lines] = CHECKPOINT_BODY.exec(body) ?? [];
  const [found, size, root] = lines;
  if (found !== origin || size === undefined || root === undefined) {
    throw invalid('the body is not a checkpoint of this register');
  }
  const again = checkpointBody({ origin, size: Number(size), rootHash: decodeBase64Any(root) });
  if (again !== body) throw invalid('the body is not in its canonical form');
}

/** The public key of `platform:register-control`, for the services that request or verify its signatures. */
export async function systemKeyOf(
  deps: SignControlDeps,
  caller: SigningCaller,
  derivationPath: string,
): Promise<SystemKey> {
  const attempt = {
    caller,
    registerId: '',
    transactionType: 'GetSystemKey',
    transactionId: '',
    derivationPath,
  };
  const code = judgeSystemKeyReading(derivationPath, caller);
  if (code !== undefined) throw await refuseAudited(deps, attempt, code);
  return controlKey(deps);
}

/** Writes the audit row and the log line of a refusal; returns the error to throw. */
export async function refuseAudited(
  deps: Pick<SignControlDeps, 'store' | 'log' | 'events'>,
  attempt: SigningAttempt,
  code: SigningRefusal,
): Promise<AppError> {
  await recordRefusal(deps, attempt, code);
  return refusal(code);
}

/** Writes the audit row and the log line of a refusal, and counts it. */
export async function recordRefusal(
  deps: Pick<SignControlDeps, 'store' | 'log' | 'events'>,
  attempt: SigningAttempt,
  code: WalletErrorCode,
): Promise<void> {
  await deps.store.auditRefusal(bounded(attempt), code);
  deps.events.refused(code);
  deps.log.warn(
    { ...logFields(attempt), securityAudit: 'system.sign', reason: code },
    'system signature refused',
  );
}

type Checked = { readonly registerId: string; readonly transactionId: string } & (
  | { readonly digest: Uint8Array }
  | { readonly message: Uint8Array }
);

// The signature is computed before the row is written and returned after it, so every returned signature has its row
// and counts towards the cap.
async function release(
  deps: SignControlDeps,
  attempt: SigningAttempt,
  cap: SignatureCap,
  check: () => Checked | Promise<Checked>,
): Promise<SystemSignature> {
  const code = judgeControlPath(attempt);
  if (code !== undefined) throw await refuseAudited(deps, attempt, code);
  const checked = await checkOrAudit(deps, attempt, check);
  const key = await controlKey(deps);
  const signature =
    'digest' in checked ? key.signer.signDigest(checked.digest) : key.signer.sign(checked.message);
  const { registerId, transactionId } = checked;
  const decision = await deps.store.takeAudited({ ...attempt, registerId, transactionId }, cap);
  if (decision === 'Signed') {
    deps.events.signed(attempt.transactionType.toLowerCase());
    return { signature, key };
  }
  deps.events.refused('RATE_LIMITED');
  const retryAfterSeconds = await deps.store.retryAfterSeconds(registerId, cap);
  deps.log.warn(
    { ...logFields(attempt), securityAudit: 'system.sign', reason: 'RATE_LIMITED' },
    'system signature refused',
  );
  throw new AppError(
    'rate_limited',
    genericCode('rate_limited'),
    'too many system signatures for this register',
    {
      retryAfterSeconds,
    },
  );
}

// Unary calls sign only with the key of register control; docket signatures are made only on the typed stream.
function judgeControlPath(attempt: SigningAttempt): SigningRefusal | undefined {
  const { derivationPath, caller } = attempt;
  const code = judgeSystemSigning(derivationPath, caller);
  if (code !== undefined) return code;
  return derivationPath === REGISTER_CONTROL ? undefined : 'SIGNING_NOT_ALLOWED';
}

async function checkOrAudit(
  deps: SignControlDeps,
  attempt: SigningAttempt,
  check: () => Checked | Promise<Checked>,
): Promise<Checked> {
  try {
    return await check();
  } catch (error) {
    if (isAppError(error, 'invalid')) await deps.store.auditRefusal(bounded(attempt), error.code);
    throw error;
  }
}

const maxAuditTextLength = 128;

// The row stores the text of a refused caller unchanged, up to a maximum length.
function bounded(attempt: SigningAttempt): SigningAttempt {
  const cut = (text: string) => text.replaceAll('\0', '').slice(0, maxAuditTextLength);
  return {
    caller: attempt.caller,
    registerId: cut(attempt.registerId),
    transactionType: cut(attempt.transactionType),
    transactionId: cut(attempt.transactionId),
    derivationPath: cut(attempt.derivationPath),
  };
}

function logFields(attempt: SigningAttempt) {
  const { caller, registerId, transactionId, transactionType, derivationPath } = bounded(attempt);
  return { clientId: caller.clientId, registerId, txId: transactionId, transactionType, derivationPath };
}

function capOf(bucket: string, limit: number): SignatureCap {
  return { bucket, limit, windowSeconds };
}
