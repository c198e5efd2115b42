import { generateSecret, generateURI, verifySync } from 'otplib';
import qrcode from 'qrcode-generator';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { lockAccount } from '../../people/accounts/store.ts';
import type { MessageQueue } from '../../people/messages/queue.ts';
import type { Origin } from '../../requests/origin.ts';
import { requirePerson } from '../../requests/person.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import { stampProof } from '../../tokens/sessions/store.ts';
import { type GateDeps, requireRecentProof } from '../challenge/gate.ts';
import { createBackupCodes, hashOfBackupCode } from './backup-codes.ts';
import { recordFactor } from './record.ts';
import {
  confirmPendingCodes,
  countBackupCodes,
  dropBackupCodes,
  findFactors,
  saveFactors,
  storePendingCodes,
  useBackupCode,
  useTotpStep,
} from './store.ts';

type Tx = Transactor<TenantDatabase>;

export interface FactorDeps extends GateDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly protection: Protection;
  readonly messages: MessageQueue;
  /** Issuer that authenticator apps show. */
  readonly installation: string;
  /** Called after the person was notified. */
  readonly notifyInboxes: () => void;
}

export interface FactorRequest {
  readonly caller: Caller;
  /** The header `X-Auth-Challenge`. */
  readonly challenge: string | undefined;
  readonly origin: Origin;
}

/** A set-up that is not verified holds for this time. */
const pendingMs = 15 * 60_000;
/** Codes of the neighbouring time steps are accepted, because clocks differ. */
const toleranceSeconds = 30;

const placeOf = (accountId: string) => `second_factors.totp_secret:${accountId}`;

/** What the person needs to add an authenticator app; nothing of it is shown again. */
interface TotpSetup {
  /** 20 bytes in base32. */
  readonly secret: string;
  readonly qrUri: string;
  /** Rows of the QR code of `qrUri`; each character is a module, 1 is dark. */
  readonly qrCode: readonly string[];
  readonly backupCodes: readonly string[];
}

/** Begins a set-up; an earlier one that was not verified ends. @throws TOTP_ALREADY_ENABLED */
export async function setUpTotp(deps: FactorDeps, caller: Caller): Promise<TotpSetup> {
  const accountId = requirePerson(caller);
  const secret = generateSecret();
  const backupCodes = createBackupCodes();
  const atMs = deps.clock.nowMs();
  const label = await deps.db.transact(async (tx) => {
    const account = await lockAccount(tx, accountId);
    const factors = await findFactors(tx, accountId);
    if (account === undefined || factors.totpVerifiedAtMs !== undefined)
      throw refusal('TOTP_ALREADY_ENABLED');
    const sealed = deps.protection.seal(Buffer.from(secret), placeOf(accountId));
    await saveFactors(tx, accountId, { pending_totp_secret: sealed, pending_totp_at: new Date(atMs) }, atMs);
    const hashes = backupCodes.map((code) => hashOfBackupCode(deps.protection.codeKey, accountId, code));
    await storePendingCodes(tx, accountId, hashes);
    return account.email ?? account.displayName;
  });
  const qrUri = `${generateURI({ issuer: deps.installation, label, secret })}&algorithm=SHA1&digits=6&period=30`;
  return { secret, qrUri, qrCode: drawQrCode(qrUri), backupCodes };
}

function drawQrCode(text: string): readonly string[] {
  const code = qrcode(0, 'M');
  code.addData(text);
  code.make();
  const size = code.getModuleCount();
  return Array.from({ length: size }, (_row, y) =>
    Array.from({ length: size }, (_column, x) => (code.isDark(y, x) ? '1' : '0')).join(''),
  );
}

/**
 * Ends the set-up with the first code of the app, which counts as used. It is a strong proof of this session.
 * @throws TOTP_ALREADY_ENABLED, TOTP_NOT_SET_UP, WRONG_CODE
 */
export async function verifyTotp(
  deps: FactorDeps,
  request: FactorRequest & { readonly code: string },
): Promise<void> {
  const accountId = requirePerson(request.caller);
  await deps.db.transact(async (tx) => {
    await lockAccount(tx, accountId);
    const factors = await findFactors(tx, accountId);
    const atMs = deps.clock.nowMs();
    if (factors.totpVerifiedAtMs !== undefined) throw refusal('TOTP_ALREADY_ENABLED');
    const { pendingTotpSecret: sealed, pendingTotpAtMs: begunMs } = factors;
    if (sealed === undefined || begunMs === undefined || atMs - begunMs > pendingMs) {
      throw refusal('TOTP_NOT_SET_UP');
    }
    const step = stepOf(deps.protection.open(sealed, placeOf(accountId)).toString(), request.code, atMs);
    if (step === undefined) throw refusal('WRONG_CODE');
    await saveFactors(
      tx,
      accountId,
      {
        totp_secret: sealed,
        totp_verified_at: new Date(atMs),
        totp_last_step: step,
        pending_totp_secret: null,
        pending_totp_at: null,
      },
      atMs,
    );
    await confirmPendingCodes(tx, accountId);
    const { sessionId } = request.caller;
    if (sessionId !== undefined) await stampProof(tx, sessionId, { strength: 'strong', atMs });
    await recordFactor(deps, tx, { accountId, request, event: 'enabled', method: 'totp', atMs });
  });
  deps.notifyInboxes();
}

/** The time step of a right code; undefined for any other text (RFC 6238). */
function stepOf(secret: string, code: string, atMs: number): number | undefined {
  const token = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const epoch = Math.floor(atMs / 1000);
  const result = verifySync({ secret, token, epoch, epochTolerance: toleranceSeconds });
  return result.valid && 'timeStep' in result ? result.timeStep : undefined;
}

/** @throws insufficient_user_authentication */
export async function removeTotp(deps: FactorDeps, request: FactorRequest): Promise<void> {
  const accountId = requirePerson(request.caller);
  await deps.db.transact(async (tx) => {
    await lockAccount(tx, accountId);
    await requireRecentProof(deps, tx, { ...request, operation: 'Disable2Fa', strength: 'strong' });
    const { totpVerifiedAtMs } = await findFactors(tx, accountId);
    if (totpVerifiedAtMs === undefined) return;
    const atMs = deps.clock.nowMs();
    await dropTotp(tx, accountId, atMs);
    await recordFactor(deps, tx, { accountId, request, event: 'disabled', method: 'totp', atMs });
  });
  deps.notifyInboxes();
}

async function dropTotp(tx: Tx, accountId: string, atMs: number): Promise<void> {
  const empty = {
    totp_secret: null,
    totp_verified_at: null,
    totp_last_step: null,
    pending_totp_secret: null,
    pending_totp_at: null,
  };
  await saveFactors(tx, accountId, empty, atMs);
  await dropBackupCodes(tx, accountId);
}

interface TotpState {
  readonly isEnabled: boolean;
  readonly verifiedAtMs: number | undefined;
  readonly backupCodesRemaining: number;
}

export async function findTotpState(
  db: Database<TenantDatabase>['read'],
  accountId: string,
): Promise<TotpState> {
  const { totpVerifiedAtMs: verifiedAtMs } = await findFactors(db, accountId);
  return {
    isEnabled: verifiedAtMs !== undefined,
    verifiedAtMs,
    backupCodesRemaining: await countBackupCodes(db, accountId),
  };
}

interface Guess {
  readonly accountId: string;
  readonly code: string;
  readonly nowMs: number;
}

/** Judges and uses a code of the app in the transaction of its effect: a code acts once, on all replicas. */
export async function acceptTotp(
  { protection }: Pick<FactorDeps, 'protection'>,
  tx: Tx,
  { accountId, code, nowMs }: Guess,
): Promise<boolean> {
  const { totpSecret, totpVerifiedAtMs } = await findFactors(tx, accountId);
  if (totpSecret === undefined || totpVerifiedAtMs === undefined) return false;
  const step = stepOf(protection.open(totpSecret, placeOf(accountId)).toString(), code, nowMs);
  return step !== undefined && (await useTotpStep(tx, accountId, step));
}

/** The same for a backup code. */
export function acceptBackupCode(
  { protection }: Pick<FactorDeps, 'protection'>,
  tx: Tx,
  { accountId, code, nowMs }: Guess,
): Promise<boolean> {
  const hash = hashOfBackupCode(protection.codeKey, accountId, code);
  return useBackupCode(tx, accountId, { hash, atMs: nowMs });
}
