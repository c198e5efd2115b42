import { randomUUID } from 'node:crypto';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import type { Issuer } from '../issuer/signing/issuers.ts';
import { type CredentialStatus, emptyStatuses, LIST_SIZE } from '../protocol/statuses.ts';

type DB = CredentialDatabase;

/** A list takes no further credentials beyond this share, so that a random place is found at once. */
const mostAllocated = Math.floor(LIST_SIZE * 0.75);

/** A list with its signed form, if that is kept; its statuses are read apart. */
export interface StatusList extends Issuer {
  readonly id: string;
  readonly version: number;
  readonly signed: { readonly token: string; readonly version: number; readonly at: Date } | undefined;
}

/** A list that takes the next credentials of an issuer, and those of some places that it has given away. */
interface OpenList {
  readonly id: string;
  readonly taken: ReadonlySet<number>;
}

/** The list that takes the next credentials of an issuer; undefined when there is none with room. */
export async function findOpenList(
  db: Reader<DB>,
  issuer: Issuer,
  indexes: readonly number[],
): Promise<OpenList | undefined> {
  const rows = await db
    .selectFrom((from) =>
      from
        .selectFrom('status_lists')
        .select('id')
        .where('wallet_address', '=', issuer.walletAddress)
        .where('trust_anchor', '=', issuer.trustAnchor)
        .where('organization_id', '=', issuer.organizationId)
        .where('allocated', '<', mostAllocated)
        .orderBy('id')
        .limit(1)
        .as('list'),
    )
    .leftJoin('credentials', (join) => join.onRef('list_id', '=', 'list.id').on('list_index', 'in', indexes))
    .select(['list.id', 'list_index'])
    .execute();
  const [first] = rows;
  return first && { id: first.id, taken: new Set(rows.flatMap(({ list_index: index }) => index ?? [])) };
}

/** A new list of an issuer. */
export async function insertList(tx: Transactor<DB>, issuer: Issuer): Promise<void> {
  await tx
    .insertInto('status_lists')
    .values({
      id: randomUUID(),
      organization_id: issuer.organizationId,
      wallet_address: issuer.walletAddress,
      trust_anchor: issuer.trustAnchor,
      size: LIST_SIZE,
      statuses: emptyStatuses(),
      signed_token: null,
      signed_version: null,
      signed_at: null,
    })
    .execute();
}

export async function findList(db: Reader<DB>, id: string): Promise<StatusList | undefined> {
  const row = await db
    .selectFrom('status_lists')
    .select(['id', 'organization_id', 'wallet_address', 'trust_anchor', 'version'])
    .select(['signed_token', 'signed_version', 'signed_at'])
    .where('id', '=', id)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { signed_token: token, signed_version: version, signed_at: at } = row;
  const isSigned = token !== null && version !== null && at !== null;
  return {
    id: row.id,
    organizationId: row.organization_id,
    walletAddress: row.wallet_address,
    trustAnchor: row.trust_anchor,
    version: row.version,
    signed: isSigned ? { token, version, at } : undefined,
  };
}

/** The statuses of a list, and their version. */
export async function readStatuses(
  db: Reader<DB>,
  id: string,
): Promise<{ readonly statuses: Buffer; readonly version: number }> {
  return db
    .selectFrom('status_lists')
    .select(['statuses', 'version'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
}

/** Keeps the signed form of a version; that of an older version never replaces it. */
export async function keepSigned(
  tx: Transactor<DB>,
  id: string,
  signed: { readonly token: string; readonly version: number; readonly at: Date },
): Promise<void> {
  await tx
    .updateTable('status_lists')
    .set({ signed_token: signed.token, signed_version: signed.version, signed_at: signed.at })
    .where('id', '=', id)
    .where((row) =>
      row.or([
        row('signed_version', 'is', null),
        row('signed_version', '<', signed.version),
        row.and([row('signed_version', '=', signed.version), row('signed_at', '<', signed.at)]),
      ]),
    )
    .execute();
}

/** A credential as its status concerns it. */
export interface IssuedCredential {
  readonly id: string;
  readonly offerId: string;
  readonly organizationId: string;
  readonly status: CredentialStatus;
  readonly listId: string | null;
  readonly listIndex: number | null;
  readonly changedAt: Date | null;
}

/** The credential, locked with its offer until the transaction ends, so that no copy is issued meanwhile. */
export async function lockCredential(tx: Transactor<DB>, id: string): Promise<IssuedCredential | undefined> {
  const row = await tx
    .selectFrom('credentials')
    .selectAll()
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
  if (row === undefined) return undefined;
  await tx.selectFrom('offers').select('id').where('id', '=', row.offer_id).forUpdate().execute();
  return {
    id: row.id,
    offerId: row.offer_id,
    organizationId: row.organization_id,
    status: row.status,
    listId: row.list_id,
    listIndex: row.list_index,
    changedAt: row.changed_at,
  };
}

/** Where the changes of a credential are recorded beside its list. */
interface RecordedCredential {
  readonly organizationId: string;
  readonly registerId: string;
  readonly walletAddress: string;
  readonly listId: string;
  readonly index: number;
}

/** Undefined for a credential whose offer named no register. */
export async function findRecorded(db: Reader<DB>, id: string): Promise<RecordedCredential | undefined> {
  const row = await db
    .selectFrom('credentials as credential')
    .innerJoin('offers as offer', 'offer.id', 'credential.offer_id')
    .select(['offer.register_id', 'offer.wallet_address', 'credential.list_id', 'credential.list_index'])
    .select('credential.organization_id')
    .where('credential.id', '=', id)
    .executeTakeFirst();
  const { register_id: registerId, list_id: listId, list_index: index } = row ?? {};
  if (row === undefined || !registerId || !listId || index === null || index === undefined) return undefined;
  return {
    organizationId: row.organization_id,
    registerId,
    walletAddress: row.wallet_address,
    listId,
    index,
  };
}

/** The statuses of a list, locked until the transaction ends. */
export async function lockStatuses(tx: Transactor<DB>, listId: string): Promise<Buffer> {
  const { statuses } = await tx
    .selectFrom('status_lists')
    .select('statuses')
    .where('id', '=', listId)
    .forUpdate()
    .executeTakeFirstOrThrow();
  return statuses;
}

/** Changes a credential and its list. */
export async function writeStatus(
  tx: Transactor<DB>,
  credential: {
    readonly id: string;
    readonly status: CredentialStatus;
    readonly reason: string;
    readonly at: Date;
  },
  list: { readonly id: string; readonly statuses: Buffer },
): Promise<void> {
  await tx
    .updateTable('credentials')
    .set({ status: credential.status, reason: credential.reason, changed_at: credential.at })
    .where('id', '=', credential.id)
    .execute();
  await tx
    .updateTable('status_lists')
    .set((column) => ({ statuses: list.statuses, version: column('version', '+', 1) }))
    .where('id', '=', list.id)
    .execute();
}
