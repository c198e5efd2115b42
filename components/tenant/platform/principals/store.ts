import { type Selectable, sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { ServicePrincipalTable, TenantDatabase } from '../../database/schema.ts';
import { type Principal, principalStatuses, type StoredPrincipal } from './principal.ts';

type DB = TenantDatabase;

export async function findPrincipal(db: Reader<DB>, clientId: string): Promise<Principal | undefined> {
  const row = await db
    .selectFrom('service_principals')
    .selectAll()
    .where('client_id', '=', clientId)
    .executeTakeFirst();
  return row && toPrincipal(row);
}

export interface PrincipalRow {
  readonly id: string;
  readonly clientId: string;
  readonly serviceName: string;
  readonly scopes: readonly string[];
  readonly canSignSystem: boolean;
  readonly secretHash?: Buffer | undefined;
  readonly createdAtMs: number;
}

/** Inserts a principal; an existing one is unchanged except for a missing secret. */
export async function insertPrincipal(tx: Transactor<DB>, row: PrincipalRow): Promise<void> {
  const hash = row.secretHash ?? null;
  await tx
    .insertInto('service_principals')
    .values({ ...columnsOf(row), secret_hash: hash })
    .onConflict((conflict) =>
      conflict
        .column('client_id')
        .doUpdateSet({ secret_hash: hash })
        .where('service_principals.secret_hash', 'is', null),
    )
    .execute();
}

/** Locks the row until the transaction ends. */
export async function lockPrincipal(
  tx: Transactor<DB>,
  clientId: string,
): Promise<StoredPrincipal | undefined> {
  const row = await tx
    .selectFrom('service_principals')
    .selectAll()
    .where('client_id', '=', clientId)
    .forUpdate()
    .executeTakeFirst();
  return row && toPrincipal(row);
}

/** In the order of their client ids. */
export async function listPrincipals(
  db: Reader<DB>,
  query: { readonly serviceName: string; readonly after: string; readonly limit: number },
): Promise<StoredPrincipal[]> {
  const all = db
    .selectFrom('service_principals')
    .selectAll()
    // in byte order, which the page cursor uses, independent of the collation of the database
    .where(sql<boolean>`client_id collate "C" > ${query.after}`)
    .orderBy(sql`client_id collate "C"`)
    .limit(query.limit);
  const filtered = query.serviceName === '' ? all : all.where('service_name', '=', query.serviceName);
  return (await filtered.execute()).map(toPrincipal);
}

/** Creates the principal or replaces its scopes and claims; returns its id. */
export async function upsertPrincipal(tx: Transactor<DB>, row: PrincipalRow): Promise<string> {
  const stored = await tx
    .insertInto('service_principals')
    .values({ ...columnsOf(row), secret_hash: null })
    .onConflict((conflict) =>
      conflict.column('client_id').doUpdateSet({
        service_name: row.serviceName,
        scopes: [...row.scopes],
        can_sign_system: row.canSignSystem,
      }),
    )
    .returning('id')
    .executeTakeFirstOrThrow();
  return stored.id;
}

/** Reactivates a revoked principal with a new id, so that its earlier tokens and secret stay invalid. */
export async function renewPrincipal(tx: Transactor<DB>, row: PrincipalRow): Promise<void> {
  await tx
    .updateTable('service_principals')
    .set({ ...columnsOf(row), secret_hash: null })
    .where('client_id', '=', row.clientId)
    .execute();
}

export async function setPrincipalStatus(
  tx: Transactor<DB>,
  clientId: string,
  status: StoredPrincipal['status'],
): Promise<void> {
  await tx.updateTable('service_principals').set({ status }).where('client_id', '=', clientId).execute();
}

/** False when the stored secret is no longer the expected one. */
export async function replaceSecret(
  tx: Transactor<DB>,
  clientId: string,
  change: { readonly from: Buffer; readonly to: Buffer; readonly atMs: number },
): Promise<boolean> {
  const result = await tx
    .updateTable('service_principals')
    .set({ secret_hash: change.to, secret_rotated_at: new Date(change.atMs) })
    .where('client_id', '=', clientId)
    .where('secret_hash', '=', change.from)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}

function columnsOf(row: PrincipalRow) {
  return {
    id: row.id,
    client_id: row.clientId,
    service_name: row.serviceName,
    scopes: [...row.scopes],
    can_sign_system: row.canSignSystem,
    status: 'Active',
    created_at: new Date(row.createdAtMs),
    secret_rotated_at: null,
  };
}

function toPrincipal(row: Selectable<ServicePrincipalTable>): StoredPrincipal {
  return {
    principalId: row.id,
    clientId: row.client_id,
    serviceName: row.service_name,
    secretHash: row.secret_hash ?? undefined,
    scopes: row.scopes,
    canSignSystem: row.can_sign_system,
    isActive: row.status === 'Active',
    // A principal of an unknown status gets no tokens.
    status: principalStatuses.find((status) => status === row.status) ?? 'Suspended',
  };
}
