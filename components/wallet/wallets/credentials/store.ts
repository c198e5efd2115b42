import { type Selectable, sql } from 'kysely';
import type { StatusReference } from '#core/credential/status-list/reference.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type {
  CredentialFormat,
  HeldCredentialTable,
  ListedStatus,
  WalletDatabase,
} from '../../database/schema.ts';
import type { IssuerClaim } from './judge.ts';

type Db = Reader<WalletDatabase>;
type Tx = Transactor<WalletDatabase>;

/** A credential of a wallet without what it says, which is sealed. */
export interface HeldCredential {
  readonly id: string;
  readonly walletId: string;
  /** SHA-256 of the credential as it was stored. */
  readonly digest: Buffer;
  readonly format: CredentialFormat;
  readonly type: string;
  readonly issuer: string | undefined;
  readonly issuerClaim: IssuerClaim;
  readonly isTrusted: boolean;
  readonly trustReason: string | undefined;
  readonly listedStatus: ListedStatus;
  readonly statusReference: StatusReference | undefined;
  readonly statusCheckedAtMs: number;
  readonly isBoundToHolderKey: boolean;
  readonly claimNames: readonly string[];
  readonly sealed: Buffer;
  readonly issuedAtMs: number | undefined;
  readonly expiresAtMs: number | undefined;
  readonly storedAtMs: number;
}

/** Inserts a credential; false when the wallet has the same one. */
export async function insertCredential(tx: Tx, credential: HeldCredential): Promise<boolean> {
  const inserted = await tx
    .insertInto('held_credentials')
    .values(toRow(credential))
    .onConflict((conflict) => conflict.columns(['wallet_id', 'digest']).doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

/** How many credentials a wallet has, and how many bytes they take. */
export async function measureCredentials(
  tx: Tx,
  walletId: string,
): Promise<{ readonly count: number; readonly bytes: number }> {
  const { count, bytes } = await tx
    .selectFrom('held_credentials')
    .select(({ fn }) => [
      fn.countAll<string>().as('count'),
      sql<string>`coalesce(sum(octet_length(sealed)), 0)`.as('bytes'),
    ])
    .where('wallet_id', '=', walletId)
    .executeTakeFirstOrThrow();
  return { count: Number(count), bytes: Number(bytes) };
}

export async function findByDigest(
  db: Db,
  walletId: string,
  digest: Buffer,
): Promise<HeldCredential | undefined> {
  const row = await db
    .selectFrom('held_credentials')
    .selectAll()
    .where('wallet_id', '=', walletId)
    .where('digest', '=', digest)
    .executeTakeFirst();
  return row && fromRow(row);
}

export async function findCredential(
  db: Db,
  walletId: string,
  id: string,
): Promise<HeldCredential | undefined> {
  const row = await db
    .selectFrom('held_credentials')
    .selectAll()
    .where('wallet_id', '=', walletId)
    .where('id', '=', id)
    .executeTakeFirst();
  return row && fromRow(row);
}

/** All credentials of a wallet, the oldest first. */
export async function listCredentials(db: Db, walletId: string): Promise<readonly HeldCredential[]> {
  const rows = await db
    .selectFrom('held_credentials')
    .selectAll()
    .where('wallet_id', '=', walletId)
    .orderBy('stored_at')
    .orderBy('id')
    .execute();
  return rows.map(fromRow);
}

/** Deletes the copy of a wallet; whether there was one. */
export async function deleteCredential(tx: Tx, walletId: string, id: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('held_credentials')
    .where('wallet_id', '=', walletId)
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
  return numDeletedRows > 0n;
}

/** How often the person presented each credential, by what their wallet app reported. */
export async function countPresented(
  db: Db,
  platformUserId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('presentations')
    .select(({ fn }) => ['credential_id', fn.countAll<string>().as('count')])
    .where('platform_user_id', '=', platformUserId)
    .where('outcome', '=', 'Presented')
    .where('credential_id', 'in', ids)
    .groupBy('credential_id')
    .execute();
  return new Map(rows.map(({ credential_id: id, count }) => [id, Number(count)]));
}

interface CheckedStatus {
  readonly status: ListedStatus | undefined;
  readonly isTrusted: boolean;
  readonly reason: string | undefined;
  readonly at: Date;
}

/**
 * Writes what was learnt of a status; undefined as status keeps it. A revoked credential stays revoked.
 * @returns whether the status changed
 */
export async function writeStatus(tx: Tx, id: string, checked: CheckedStatus): Promise<boolean> {
  const row = await tx
    .selectFrom('held_credentials')
    .select('status')
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined || row.status === 'Revoked') return false;
  const status = checked.status ?? row.status;
  await tx
    .updateTable('held_credentials')
    .set({
      status,
      trusted: checked.isTrusted,
      trust_reason: checked.reason ?? null,
      status_checked_at: checked.at,
    })
    .where('id', '=', id)
    .execute();
  return status !== row.status;
}

/** Takes credentials whose status was checked before a time, and marks them as checked now: each is one replica's. */
export async function takeUnchecked(
  tx: Tx,
  { before, now, most }: { readonly before: Date; readonly now: Date; readonly most: number },
): Promise<readonly HeldCredential[]> {
  const due = tx
    .selectFrom('held_credentials')
    .select('id')
    .where('status', '<>', 'Revoked')
    .where('status_uri', 'is not', null)
    .where('status_checked_at', '<=', before)
    .orderBy('status_checked_at')
    .limit(most)
    .forUpdate()
    .skipLocked();
  const rows = await tx
    .updateTable('held_credentials')
    .set({ status_checked_at: now })
    .where('id', 'in', due)
    .returningAll()
    .execute();
  return rows.map(fromRow);
}

function fromRow(row: Selectable<HeldCredentialTable>): HeldCredential {
  return {
    id: row.id,
    walletId: row.wallet_id,
    digest: row.digest,
    format: row.format,
    type: row.type,
    issuer: row.issuer ?? undefined,
    issuerClaim: { certificates: row.issuer_certificates, keyId: row.issuer_key_id },
    isTrusted: row.trusted,
    trustReason: row.trust_reason ?? undefined,
    listedStatus: row.status,
    statusReference:
      row.status_uri === null ? undefined : { uri: row.status_uri, index: Number(row.status_index) },
    statusCheckedAtMs: row.status_checked_at.getTime(),
    isBoundToHolderKey: row.bound_to_holder_key,
    claimNames: row.claim_names,
    sealed: row.sealed,
    issuedAtMs: row.issued_at?.getTime(),
    expiresAtMs: row.expires_at?.getTime(),
    storedAtMs: row.stored_at.getTime(),
  };
}

function toRow(credential: HeldCredential) {
  const { issuerClaim, statusReference, issuedAtMs, expiresAtMs } = credential;
  const certificates = issuerClaim.certificates.map((der) => Buffer.from(der));
  return {
    id: credential.id,
    wallet_id: credential.walletId,
    digest: credential.digest,
    format: credential.format,
    type: credential.type,
    issuer: credential.issuer ?? null,
    issuer_certificates: sql<Buffer[]>`${certificates}::bytea[]`,
    issuer_key_id: issuerClaim.keyId,
    trusted: credential.isTrusted,
    trust_reason: credential.trustReason ?? null,
    status: credential.listedStatus,
    status_uri: statusReference?.uri ?? null,
    status_index: statusReference === undefined ? null : String(statusReference.index),
    status_checked_at: new Date(credential.statusCheckedAtMs),
    bound_to_holder_key: credential.isBoundToHolderKey,
    claim_names: [...credential.claimNames],
    sealed: credential.sealed,
    issued_at: issuedAtMs === undefined ? null : new Date(issuedAtMs),
    expires_at: expiresAtMs === undefined ? null : new Date(expiresAtMs),
    stored_at: new Date(credential.storedAtMs),
  };
}
