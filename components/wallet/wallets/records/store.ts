import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import { isWalletAddress } from '#core/crypto/address.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { SealedSecret, SecretPurpose } from '../../custody/envelope.ts';
import type { WalletDatabase, WalletTable } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Wallet } from './wallet.ts';

/** A sealed secret with its purpose. */
export interface StoredSecret extends SealedSecret {
  readonly purpose: SecretPurpose;
}

/** The wallets that a caller may see: own wallets, granted wallets and those of an administered organisation. */
interface WalletView {
  readonly platformUserId: string;
  /** organisation of the token: derived keys of other organisations are not in view */
  readonly organizationId: string | undefined;
  readonly administeredOrganizationId: string | undefined;
  readonly nowMs: number;
}

type Db = Reader<WalletDatabase>;
type Tx = Transactor<WalletDatabase>;

/**
 * Stores the wallet with its secret. Returns false and writes nothing when the address, the organisation's only wallet
 * or the system identity already exists.
 */
export async function insertWallet(tx: Tx, wallet: Wallet, secret: StoredSecret): Promise<boolean> {
  const row = await tx
    .insertInto('wallets')
    .values(toRow(wallet))
    .onConflict((conflict) => conflict.doNothing())
    .returning('id')
    .executeTakeFirst();
  if (row === undefined) return false;
  await insertSecret(tx, wallet.id, secret);
  return true;
}

export async function insertSecret(tx: Tx, walletId: string, secret: StoredSecret): Promise<void> {
  await tx
    .insertInto('wallet_secrets')
    .values({
      wallet_id: walletId,
      purpose: secret.purpose,
      kek_id: secret.kekId,
      wrapped_key: secret.wrappedKey,
      sealed: secret.sealed,
    })
    .execute();
}

/** By id or by address. */
export async function findWallet(db: Db, idOrAddress: string): Promise<Wallet | undefined> {
  const isId = walletIdPattern.test(idOrAddress);
  if (!isId && !isWalletAddress(idOrAddress)) return undefined;
  const column = isId ? 'id' : 'address';
  const row = await db.selectFrom('wallets').selectAll().where(column, '=', idOrAddress).executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

/** A wallet that is not a system wallet. @throws AppError not_found WALLET_NOT_FOUND */
export async function getWallet(db: Db, idOrAddress: string): Promise<Wallet> {
  const wallet = await findWallet(db, idOrAddress);
  if (wallet === undefined || wallet.kind === 'System') throw refusal('WALLET_NOT_FOUND');
  return wallet;
}

export async function findSystemWallet(db: Db, identity: string): Promise<Wallet | undefined> {
  const query = db.selectFrom('wallets').selectAll().where('system_identity', '=', identity);
  const row = await query.executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

/** The wallet of a system identity and those of `{identity}/2` and so on. Identities contain no slash. */
export async function listSystemWallets(db: Db, identity: string): Promise<Wallet[]> {
  const rows = await db
    .selectFrom('wallets')
    .selectAll()
    .where((where) =>
      where.or([where('system_identity', '=', identity), where('system_identity', 'like', `${identity}/%`)]),
    )
    .execute();
  return rows.map(fromRow);
}

/** Deletes the wallets of listSystemWallets with their secrets; returns their number. */
export async function deleteSystemWallets(tx: Tx, identity: string): Promise<number> {
  const ids = (await listSystemWallets(tx, identity)).map(({ id }) => id);
  if (ids.length === 0) return 0;
  await tx.deleteFrom('wallet_secrets').where('wallet_id', 'in', ids).execute();
  await tx.deleteFrom('wallets').where('id', 'in', ids).execute();
  return ids.length;
}

export async function listByAddresses(db: Db, addresses: readonly string[]): Promise<Wallet[]> {
  const valid = addresses.filter((address) => isWalletAddress(address));
  if (valid.length === 0) return [];
  const rows = await db.selectFrom('wallets').selectAll().where('address', 'in', valid).execute();
  return rows.map(fromRow);
}

/** The wallet of an organisation; neither its derived keys nor an earlier wallet that was replaced or deleted. */
export async function findOrganizationWallet(db: Db, organizationId: string): Promise<Wallet | undefined> {
  const row = await organizationWallet(db, organizationId).executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

/**
 * The wallet that holds the credentials of a person: the oldest own one with a key type that derives keys. A lock does
 * not pass this on to another wallet, because credentials are bound to the key.
 */
export async function findHolderWallet(db: Db, platformUserId: string): Promise<Wallet | undefined> {
  const row = await db
    .selectFrom('wallets')
    .selectAll()
    .where('kind', '=', 'User')
    .where('owner_user_id', '=', platformUserId)
    .where('key_type', '<>', 'RSA')
    .where('status', 'in', ['Active', 'Locked'])
    .orderBy('created_at')
    .orderBy('id')
    .limit(1)
    .executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

/**
 * The wallet of an organisation, which stays as it is until the transaction ends. `update`: for a change of it, which
 * waits for transactions that derive from it.
 */
export async function holdOrganizationWallet(
  tx: Tx,
  organizationId: string,
  mode: 'share' | 'update',
): Promise<Wallet | undefined> {
  const query = organizationWallet(tx, organizationId);
  const row = await (mode === 'share' ? query.forShare() : query.forUpdate()).executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

function organizationWallet(db: Db, organizationId: string) {
  return db
    .selectFrom('wallets')
    .selectAll()
    .where('owner_organization_id', '=', organizationId)
    .where('kind', '=', 'Organization')
    .where('status', '<>', 'Deleted')
    .where('replaced_at', 'is', null);
}

/** The wallet of a service under a name. */
export async function findServiceWallet(
  db: Db,
  of: { readonly clientId: string; readonly name: string },
): Promise<Wallet | undefined> {
  const row = await db
    .selectFrom('wallets')
    .selectAll()
    .where('owner_service', '=', of.clientId)
    .where('service_name', '=', of.name)
    .executeTakeFirst();
  return row === undefined ? undefined : fromRow(row);
}

/** Active wallets of a service, oldest first. */
export async function listOfService(db: Db, clientId: string): Promise<Wallet[]> {
  const rows = await db
    .selectFrom('wallets')
    .selectAll()
    .where('status', '=', 'Active')
    .where('owner_service', '=', clientId)
    .orderBy('created_at')
    .orderBy('id')
    .limit(maxUsableWallets)
    .execute();
  return rows.map(fromRow);
}

export async function findSecret(db: Db, walletId: string): Promise<StoredSecret | undefined> {
  const row = await db
    .selectFrom('wallet_secrets')
    .selectAll()
    .where('wallet_id', '=', walletId)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  return { purpose: row.purpose, kekId: row.kek_id, wrappedKey: row.wrapped_key, sealed: row.sealed };
}

/** The wallets of a view, oldest first, and their total number. */
export async function listVisible(
  db: Db,
  view: WalletView,
  window: { readonly offset: number; readonly limit: number },
): Promise<{ wallets: Wallet[]; totalCount: number }> {
  const visible = db.selectFrom('wallets').where((eb) => inView(eb, view));
  const rows = await visible
    .selectAll()
    .orderBy('created_at')
    .orderBy('id')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const count = await visible.select(({ fn }) => fn.countAll<string>().as('count')).executeTakeFirst();
  return { wallets: rows.map(fromRow), totalCount: Number(count?.count ?? 0) };
}

/**
 * Active wallets that the person may sign with: own wallets and derived keys of the organisation of the token, oldest
 * first, then those with a ReadWrite grant.
 */
export async function listUsable(
  db: Db,
  { platformUserId, organizationId, nowMs }: Omit<WalletView, 'administeredOrganizationId'>,
): Promise<Wallet[]> {
  const rows = await db
    .selectFrom('wallets')
    .selectAll()
    .where('status', '=', 'Active')
    .where((eb) =>
      eb.or([
        eb.and([
          isOwn(eb, { platformUserId, organizationId }),
          eb.or([eb('key_status', 'is', null), eb('key_status', '=', 'Active')]),
        ]),
        eb('id', 'in', grantedTo(eb, platformUserId, nowMs).where('access_right', '<>', 'ReadOnly')),
      ]),
    )
    .orderBy(sql`owner_user_id IS NULL OR owner_user_id <> ${platformUserId}`)
    .orderBy('created_at')
    .orderBy('id')
    .limit(maxUsableWallets)
    .execute();
  return rows.map(fromRow);
}

const walletIdPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const maxUsableWallets = 1000;

function inView(eb: ExpressionBuilder<WalletDatabase, 'wallets'>, view: WalletView) {
  const own = isOwn(eb, view);
  const granted = eb('id', 'in', grantedTo(eb, view.platformUserId, view.nowMs));
  const { administeredOrganizationId } = view;
  if (administeredOrganizationId === undefined) return eb.or([own, granted]);
  return eb.or([own, granted, eb('owner_organization_id', '=', administeredOrganizationId)]);
}

function isOwn(
  eb: ExpressionBuilder<WalletDatabase, 'wallets'>,
  { platformUserId, organizationId }: Pick<WalletView, 'platformUserId' | 'organizationId'>,
) {
  const ownKind = eb('kind', '<>', 'Derived');
  const inOrganization =
    organizationId === undefined
      ? ownKind
      : eb.or([ownKind, eb('owner_organization_id', '=', organizationId)]);
  return eb.and([eb('owner_user_id', '=', platformUserId), inOrganization]);
}

function grantedTo(eb: ExpressionBuilder<WalletDatabase, 'wallets'>, subject: string, nowMs: number) {
  return eb
    .selectFrom('wallet_grants')
    .select('wallet_id')
    .where('subject', '=', subject)
    .where('ended_at', 'is', null)
    .where((inner) => inner.or([inner('expires_at', 'is', null), inner('expires_at', '>', new Date(nowMs))]));
}

export function fromRow(row: Selectable<WalletTable>): Wallet {
  return {
    id: row.id,
    address: row.address,
    kind: row.kind,
    ownerUserId: row.owner_user_id ?? undefined,
    ownerOrganizationId: row.owner_organization_id ?? undefined,
    systemIdentity: row.system_identity ?? undefined,
    ownerService: row.owner_service ?? undefined,
    serviceName: row.service_name ?? undefined,
    title: row.title,
    description: row.description ?? undefined,
    keyType: row.key_type,
    slot: row.slot,
    publicKey: row.public_key,
    encryptionKey: row.encryption_key ?? undefined,
    status: row.status,
    keyStatus: row.key_status ?? undefined,
    lockedAtMs: row.locked_at?.getTime(),
    createdBy: row.created_by,
    createdAtMs: row.created_at.getTime(),
  };
}

function toRow(wallet: Wallet) {
  return {
    id: wallet.id,
    address: wallet.address,
    kind: wallet.kind,
    owner_user_id: wallet.ownerUserId ?? null,
    owner_organization_id: wallet.ownerOrganizationId ?? null,
    system_identity: wallet.systemIdentity ?? null,
    owner_service: wallet.ownerService ?? null,
    service_name: wallet.serviceName ?? null,
    title: wallet.title,
    description: wallet.description ?? null,
    key_type: wallet.keyType,
    slot: wallet.slot,
    public_key: wallet.publicKey,
    encryption_key: wallet.encryptionKey ?? null,
    status: wallet.status,
    key_status: wallet.keyStatus ?? null,
    locked_at: wallet.lockedAtMs === undefined ? null : new Date(wallet.lockedAtMs),
    replaced_at: null,
    created_by: wallet.createdBy,
    created_at: new Date(wallet.createdAtMs),
  };
}
