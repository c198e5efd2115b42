import type { Insertable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { SecondFactorTable, TenantDatabase } from '../../database/schema.ts';

type DB = TenantDatabase;

/** Second factors of a person; what is sealed is opened by the caller. */
interface StoredFactors {
  readonly totpSecret: Buffer | undefined;
  readonly totpVerifiedAtMs: number | undefined;
  readonly totpLastStep: number | undefined;
  readonly pendingTotpSecret: Buffer | undefined;
  readonly pendingTotpAtMs: number | undefined;
  readonly emailCodes: boolean;
  readonly smsCodes: boolean;
  readonly phone: Buffer | undefined;
  readonly pendingPhone: Buffer | undefined;
}

const none: StoredFactors = {
  totpSecret: undefined,
  totpVerifiedAtMs: undefined,
  totpLastStep: undefined,
  pendingTotpSecret: undefined,
  pendingTotpAtMs: undefined,
  emailCodes: false,
  smsCodes: false,
  phone: undefined,
  pendingPhone: undefined,
};

export async function findFactors(db: Reader<DB>, accountId: string): Promise<StoredFactors> {
  const row = await db
    .selectFrom('second_factors')
    .selectAll()
    .where('platform_user_id', '=', accountId)
    .executeTakeFirst();
  if (row === undefined) return none;
  return {
    totpSecret: row.totp_secret ?? undefined,
    totpVerifiedAtMs: row.totp_verified_at?.getTime(),
    totpLastStep: row.totp_last_step === null ? undefined : Number(row.totp_last_step),
    pendingTotpSecret: row.pending_totp_secret ?? undefined,
    pendingTotpAtMs: row.pending_totp_at?.getTime(),
    emailCodes: row.email_otp_enabled,
    smsCodes: row.sms_otp_enabled,
    phone: row.phone_verified_at === null ? undefined : (row.phone ?? undefined),
    pendingPhone: row.pending_phone ?? undefined,
  };
}

type Change = Partial<Omit<Insertable<SecondFactorTable>, 'platform_user_id' | 'updated_at'>>;

export async function saveFactors(
  tx: Transactor<DB>,
  accountId: string,
  change: Change,
  atMs: number,
): Promise<void> {
  const values = { ...change, updated_at: new Date(atMs) };
  await tx
    .insertInto('second_factors')
    .values({ platform_user_id: accountId, ...values })
    .onConflict((conflict) => conflict.column('platform_user_id').doUpdateSet(values))
    .execute();
}

/** Uses the code of a time step: false when that step, or a later one, was used before (RFC 6238, 5.2). */
export async function useTotpStep(tx: Transactor<DB>, accountId: string, step: number): Promise<boolean> {
  const row = await tx
    .updateTable('second_factors')
    .set({ totp_last_step: step })
    .where('platform_user_id', '=', accountId)
    .where('totp_verified_at', 'is not', null)
    .where((eb) => eb.or([eb('totp_last_step', 'is', null), eb('totp_last_step', '<', step)]))
    .returning('platform_user_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Replaces the backup codes of a set-up that is not verified yet. */
export async function storePendingCodes(
  tx: Transactor<DB>,
  accountId: string,
  hashes: readonly Buffer[],
): Promise<void> {
  await tx
    .deleteFrom('backup_codes')
    .where('platform_user_id', '=', accountId)
    .where('is_pending', '=', true)
    .execute();
  await tx
    .insertInto('backup_codes')
    .values(hashes.map((hash) => ({ platform_user_id: accountId, hash, is_pending: true, used_at: null })))
    .execute();
}

export async function confirmPendingCodes(tx: Transactor<DB>, accountId: string): Promise<void> {
  await tx
    .deleteFrom('backup_codes')
    .where('platform_user_id', '=', accountId)
    .where('is_pending', '=', false)
    .execute();
  await tx
    .updateTable('backup_codes')
    .set({ is_pending: false })
    .where('platform_user_id', '=', accountId)
    .execute();
}

/** Uses a backup code: of parallel uses one succeeds. */
export async function useBackupCode(
  tx: Transactor<DB>,
  accountId: string,
  code: { readonly hash: Buffer; readonly atMs: number },
): Promise<boolean> {
  const row = await tx
    .updateTable('backup_codes')
    .set({ used_at: new Date(code.atMs) })
    .where('platform_user_id', '=', accountId)
    .where('hash', '=', code.hash)
    .where('is_pending', '=', false)
    .where('used_at', 'is', null)
    .returning('hash')
    .executeTakeFirst();
  return row !== undefined;
}

export async function countBackupCodes(db: Reader<DB>, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('backup_codes')
    .select((eb) => eb.fn.countAll<string>().as('left'))
    .where('platform_user_id', '=', accountId)
    .where('is_pending', '=', false)
    .where('used_at', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(row.left);
}

export async function dropBackupCodes(tx: Transactor<DB>, accountId: string): Promise<void> {
  await tx.deleteFrom('backup_codes').where('platform_user_id', '=', accountId).execute();
}
