import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { KeySource } from '../keys/organization-keys.ts';

type DB = TenantDatabase;

export const PROVENANCES = ['Internal', 'Imported'] as const;
export type Provenance = (typeof PROVENANCES)[number];
export const STATUSES = ['Active', 'Superseded', 'Revoked', 'KeyMismatch', 'Expired'] as const;
type CertificateStatus = (typeof STATUSES)[number];

/** A certificate of the key of an organisation. */
export interface StoredCertificate {
  readonly id: string;
  readonly organizationId: string;
  readonly walletAddress: string;
  readonly provenance: Provenance;
  readonly status: CertificateStatus;
  /** DER, the leaf first, without a self-signed certificate. */
  readonly chain: readonly Buffer[];
  /** DER of the self-signed certificate above, where it is known. */
  readonly anchor: Buffer | undefined;
  /** Of an internal certificate. */
  readonly rootId: string | undefined;
  readonly serialNumber: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** When the first certificate of chain and anchor expires. */
  readonly usableUntilMs: number;
  readonly keySource: KeySource;
  readonly keyThumbprint: string;
  readonly createdAtMs: number;
  readonly revokedAtMs: number | undefined;
}

interface CertificatePlace {
  readonly organizationId: string;
  readonly walletAddress: string;
}

interface RetiredQuery {
  readonly provenance: Provenance;
  readonly keyThumbprint: string;
  readonly atMs: number;
}

/** The newest certificates of an organisation, newest first. */
export async function listCertificates(
  db: Reader<DB>,
  organizationId: string,
  limit: number,
): Promise<StoredCertificate[]> {
  const rows = await db
    .selectFrom('organization_certificates')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(toCertificate);
}

/** The certificate of a provenance that is in use, as far as the row knows. */
export async function findActive(
  db: Reader<DB>,
  organizationId: string,
  provenance: Provenance,
): Promise<StoredCertificate | undefined> {
  const row = await db
    .selectFrom('organization_certificates')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('provenance', '=', provenance)
    .where('status', '=', 'Active')
    .executeTakeFirst();
  return row && toCertificate(row);
}

/** The newest certificate of a key that was replaced or retired and that still holds at a time. */
export async function findRetired(
  db: Reader<DB>,
  { organizationId, walletAddress }: CertificatePlace,
  { provenance, keyThumbprint, atMs }: RetiredQuery,
): Promise<StoredCertificate | undefined> {
  const row = await db
    .selectFrom('organization_certificates')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('wallet_address', '=', walletAddress)
    .where('provenance', '=', provenance)
    .where('key_thumbprint', '=', keyThumbprint)
    .where('status', '=', 'Superseded')
    .where('usable_until', '>', new Date(atMs))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row && toCertificate(row);
}

/** Stores a certificate in use. The id of the one of its provenance that it replaces; undefined when there was none. */
export async function insertActive(
  tx: Transactor<DB>,
  certificate: Omit<StoredCertificate, 'status' | 'revokedAtMs'>,
): Promise<string | undefined> {
  const superseded = await tx
    .updateTable('organization_certificates')
    .set({ status: 'Superseded' })
    .where('organization_id', '=', certificate.organizationId)
    .where('provenance', '=', certificate.provenance)
    .where('status', '=', 'Active')
    .returning('id')
    .executeTakeFirst();
  await tx
    .insertInto('organization_certificates')
    .values({
      id: certificate.id,
      organization_id: certificate.organizationId,
      wallet_address: certificate.walletAddress,
      provenance: certificate.provenance,
      status: 'Active',
      chain: sql`${certificate.chain}::bytea[]`,
      anchor: certificate.anchor ?? null,
      root_id: certificate.rootId ?? null,
      serial_number: certificate.serialNumber,
      not_before: new Date(certificate.notBeforeMs),
      not_after: new Date(certificate.notAfterMs),
      usable_until: new Date(certificate.usableUntilMs),
      key_source: certificate.keySource,
      key_thumbprint: certificate.keyThumbprint,
      created_at: new Date(certificate.createdAtMs),
      revoked_at: null,
      revocation_reason: null,
    })
    .execute();
  return superseded?.id;
}

/** Ends the use of a certificate, unless something else ended it meanwhile. */
export async function endUse(
  tx: Transactor<DB>,
  id: string,
  status: 'KeyMismatch' | 'Expired',
): Promise<void> {
  await tx
    .updateTable('organization_certificates')
    .set({ status })
    .where('id', '=', id)
    .where('status', '=', 'Active')
    .execute();
}

/** Retires an imported certificate. Undefined when there is none; `changed` is false when it was retired before. */
export async function retireImported(
  tx: Transactor<DB>,
  { organizationId, walletAddress }: CertificatePlace,
  id: string,
): Promise<{ readonly changed: boolean } | undefined> {
  const row = await tx
    .selectFrom('organization_certificates')
    .select('status')
    .where('id', '=', id)
    .where('organization_id', '=', organizationId)
    .where('wallet_address', '=', walletAddress)
    .where('provenance', '=', 'Imported')
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  if (row.status === 'Superseded') return { changed: false };
  await tx
    .updateTable('organization_certificates')
    .set({ status: 'Superseded' })
    .where('id', '=', id)
    .execute();
  return { changed: true };
}

/** Revokes every internal certificate of a wallet that is not expired: they are for the same key. */
export async function revokeInternal(
  tx: Transactor<DB>,
  { organizationId, walletAddress }: CertificatePlace,
  { atMs, reason }: { readonly atMs: number; readonly reason: string },
): Promise<StoredCertificate[]> {
  const rows = await tx
    .updateTable('organization_certificates')
    .set({ status: 'Revoked', revoked_at: new Date(atMs), revocation_reason: reason })
    .where('organization_id', '=', organizationId)
    .where('wallet_address', '=', walletAddress)
    .where('provenance', '=', 'Internal')
    .where('status', '<>', 'Revoked')
    .where('not_after', '>=', new Date(atMs))
    .returningAll()
    .execute();
  return rows.map(toCertificate);
}

/** Revoked internal certificates of a wallet, newest first. */
export async function listRevokedOf(
  db: Reader<DB>,
  { organizationId, walletAddress }: CertificatePlace,
  limit: number,
): Promise<StoredCertificate[]> {
  const rows = await db
    .selectFrom('organization_certificates')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('wallet_address', '=', walletAddress)
    .where('status', '=', 'Revoked')
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
  return rows.map(toCertificate);
}

/** A certificate that an organisation of this installation issued, and its root, by the exact bytes. */
export async function findIssued(
  db: Reader<DB>,
  certificate: Uint8Array,
): Promise<{ readonly root: Buffer; readonly isRevoked: boolean } | undefined> {
  const row = await db
    .selectFrom('organization_certificates as c')
    .innerJoin('organization_roots as r', 'r.id', 'c.root_id')
    .select(['r.certificate', 'c.status'])
    .where('c.provenance', '=', 'Internal')
    .where(sql`c.chain[1]`, '=', Buffer.from(certificate))
    .executeTakeFirst();
  return row && { root: row.certificate, isRevoked: row.status === 'Revoked' };
}

/** Whether a certificate of the key was revoked because the key was compromised. */
export async function isCompromised(
  db: Reader<DB>,
  organizationId: string,
  keyThumbprint: string,
): Promise<boolean> {
  const row = await db
    .selectFrom('organization_certificates')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('key_thumbprint', '=', keyThumbprint)
    .where('status', '=', 'Revoked')
    .where('revocation_reason', '=', 'keyCompromise')
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

function toCertificate(row: Selectable<DB['organization_certificates']>): StoredCertificate {
  return {
    id: row.id,
    organizationId: row.organization_id,
    walletAddress: row.wallet_address,
    provenance: nameOf(PROVENANCES, row.provenance),
    status: nameOf(STATUSES, row.status),
    chain: row.chain,
    anchor: row.anchor ?? undefined,
    rootId: row.root_id ?? undefined,
    serialNumber: row.serial_number,
    notBeforeMs: row.not_before.getTime(),
    notAfterMs: row.not_after.getTime(),
    usableUntilMs: row.usable_until.getTime(),
    keySource: nameOf(['Primary', 'HaipCoKey'], row.key_source),
    keyThumbprint: row.key_thumbprint,
    createdAtMs: row.created_at.getTime(),
    revokedAtMs: row.revoked_at?.getTime(),
  };
}

function nameOf<T extends string>(names: readonly T[], text: string): T {
  const name = names.find((each) => each === text);
  if (name === undefined) throw refusal('ROW_UNREADABLE');
  return name;
}
