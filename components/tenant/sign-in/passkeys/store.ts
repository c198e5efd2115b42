import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { PasskeyTable, TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';

type DB = TenantDatabase;

/** Disabled: its counter went back, so a copy of it may exist; it signs in no longer and can be removed. */
type PasskeyStatus = 'Active' | 'Disabled';

/** A passkey of a person (WebAuthn Level 3). */
export interface Passkey {
  readonly id: string;
  readonly credentialId: Buffer;
  /** COSE_Key. */
  readonly publicKey: Buffer;
  readonly counter: number;
  readonly accountId: string;
  readonly displayName: string;
  readonly deviceType: string;
  readonly transports: readonly string[];
  readonly status: PasskeyStatus;
  readonly disabledReason: string | undefined;
  readonly createdAtMs: number;
  readonly lastUsedAtMs: number | undefined;
}

interface NewPasskey
  extends Pick<
    Passkey,
    | 'id'
    | 'credentialId'
    | 'publicKey'
    | 'counter'
    | 'accountId'
    | 'displayName'
    | 'deviceType'
    | 'transports'
  > {
  readonly isBackedUp: boolean;
  readonly attestationType: string;
  readonly aaguid: string;
  readonly createdAtMs: number;
}

/** @returns false when the credential is known, of any account */
export async function insertPasskey(tx: Transactor<DB>, passkey: NewPasskey): Promise<boolean> {
  const row = await tx
    .insertInto('passkeys')
    .values({
      id: passkey.id,
      credential_id: passkey.credentialId,
      public_key: passkey.publicKey,
      counter: passkey.counter,
      platform_user_id: passkey.accountId,
      display_name: passkey.displayName,
      device_type: passkey.deviceType,
      transports: [...passkey.transports],
      backup_eligible: passkey.deviceType === 'multiDevice',
      backup_state: passkey.isBackedUp,
      attestation_type: passkey.attestationType,
      aaguid: passkey.aaguid,
      status: 'Active',
      disabled_reason: null,
      disabled_at: null,
      created_at: new Date(passkey.createdAtMs),
      last_used_at: null,
    })
    .onConflict((conflict) => conflict.column('credential_id').doNothing())
    .returning('id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Passkeys of a person, the oldest first. */
export async function listPasskeys(db: Reader<DB>, accountId: string): Promise<readonly Passkey[]> {
  const rows = await db
    .selectFrom('passkeys')
    .selectAll()
    .where('platform_user_id', '=', accountId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
  return rows.map(toPasskey);
}

export async function findPasskey(db: Reader<DB>, credentialId: Buffer): Promise<Passkey | undefined> {
  const row = await db
    .selectFrom('passkeys')
    .selectAll()
    .where('credential_id', '=', credentialId)
    .executeTakeFirst();
  return row && toPasskey(row);
}

/** Locks the row until the transaction ends, so that of parallel uses each sees the counter of the one before. */
export async function lockPasskey(tx: Transactor<DB>, id: string): Promise<Passkey | undefined> {
  const row = await tx.selectFrom('passkeys').selectAll().where('id', '=', id).forUpdate().executeTakeFirst();
  return row && toPasskey(row);
}

export async function recordUse(
  tx: Transactor<DB>,
  id: string,
  use: { readonly counter: number; readonly isBackedUp: boolean; readonly atMs: number },
): Promise<void> {
  await tx
    .updateTable('passkeys')
    .set({ counter: use.counter, backup_state: use.isBackedUp, last_used_at: new Date(use.atMs) })
    .where('id', '=', id)
    .execute();
}

export async function disablePasskey(
  tx: Transactor<DB>,
  id: string,
  why: { readonly reason: string; readonly atMs: number },
): Promise<void> {
  await tx
    .updateTable('passkeys')
    .set({ status: 'Disabled', disabled_reason: why.reason, disabled_at: new Date(why.atMs) })
    .where('id', '=', id)
    .execute();
}

export async function deletePasskey(tx: Transactor<DB>, id: string): Promise<void> {
  await tx.deleteFrom('passkeys').where('id', '=', id).execute();
}

function toPasskey(row: Selectable<PasskeyTable>): Passkey {
  const { status } = row;
  if (status !== 'Active' && status !== 'Disabled') throw refusal('ROW_UNREADABLE');
  return {
    id: row.id,
    credentialId: row.credential_id,
    publicKey: row.public_key,
    counter: Number(row.counter),
    accountId: row.platform_user_id,
    displayName: row.display_name,
    deviceType: row.device_type,
    transports: row.transports,
    status,
    disabledReason: row.disabled_reason ?? undefined,
    createdAtMs: row.created_at.getTime(),
    lastUsedAtMs: row.last_used_at?.getTime(),
  };
}
