import type { Selectable } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { type ProviderMetadata, providerMetadata } from '../../sign-in/federation/upstream/discovery.ts';
import { isPreset, type Preset } from './preset.ts';

type DB = TenantDatabase;

/** The identity provider of an organisation, as it is stored. */
export interface StoredProvider {
  readonly id: string;
  readonly organizationId: string;
  readonly preset: Preset;
  readonly displayName: string;
  readonly issuerUrl: string;
  readonly clientId: string;
  /** Sealed. */
  readonly clientSecret: Buffer | undefined;
  readonly scopes: readonly string[];
  readonly isEnabled: boolean;
  /** What the provider published when it was read last; undefined when it never could be read. */
  readonly metadata: ProviderMetadata | undefined;
  readonly discoveredAtMs: number | undefined;
  readonly discoveryError: string | undefined;
}

export async function findProvider(
  db: Reader<DB>,
  organizationId: string,
): Promise<StoredProvider | undefined> {
  const row = await db
    .selectFrom('idp_configurations')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  return row && toProvider(row);
}

type NewProvider = Omit<StoredProvider, 'isEnabled'> & { readonly isEnabled: boolean; readonly atMs: number };

/** Writes the provider of an organisation, whether it has one or not. */
export async function saveProvider(tx: Transactor<DB>, provider: NewProvider): Promise<void> {
  const at = new Date(provider.atMs);
  const values = {
    provider_preset: provider.preset,
    display_name: provider.displayName,
    issuer_url: provider.issuerUrl,
    client_id: provider.clientId,
    client_secret: provider.clientSecret ?? null,
    scopes: [...provider.scopes],
    is_enabled: provider.isEnabled,
    ...discovered(provider),
    updated_at: at,
  };
  const { id, organizationId: organization_id } = provider;
  await tx
    .insertInto('idp_configurations')
    .values({ id, organization_id, ...values, last_login_at: null, created_at: at })
    .onConflict((conflict) => conflict.column('organization_id').doUpdateSet(values))
    .execute();
}

type Discovered = Pick<StoredProvider, 'metadata' | 'discoveredAtMs' | 'discoveryError'>;

function discovered({ metadata, discoveredAtMs, discoveryError }: Discovered) {
  return {
    discovered: metadata === undefined ? null : JSON.stringify(metadata),
    discovery_fetched_at: discoveredAtMs === undefined ? null : new Date(discoveredAtMs),
    discovery_error: discoveryError ?? null,
  };
}

/** Stores what was read again, unless the configuration has changed meanwhile. */
export async function saveDiscovery(
  tx: Transactor<DB>,
  { id, issuerUrl, ...read }: Discovered & Pick<StoredProvider, 'id' | 'issuerUrl'>,
): Promise<void> {
  await tx
    .updateTable('idp_configurations')
    .set(discovered(read))
    .where('id', '=', id)
    .where('issuer_url', '=', issuerUrl)
    .execute();
}

export async function setProviderEnabled(
  tx: Transactor<DB>,
  organizationId: string,
  change: { readonly isEnabled: boolean; readonly atMs: number },
): Promise<void> {
  await tx
    .updateTable('idp_configurations')
    .set({ is_enabled: change.isEnabled, updated_at: new Date(change.atMs) })
    .where('organization_id', '=', organizationId)
    .execute();
}

/** @returns false when there was none */
export async function deleteProvider(tx: Transactor<DB>, organizationId: string): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('idp_configurations')
    .where('organization_id', '=', organizationId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** Locks the row of the provider until the transaction ends. */
export async function lockProvider(
  tx: Transactor<DB>,
  organizationId: string,
): Promise<StoredProvider | undefined> {
  const row = await tx
    .selectFrom('idp_configurations')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .forUpdate()
    .executeTakeFirst();
  return row && toProvider(row);
}

export async function recordProviderUse(
  tx: Transactor<DB>,
  organizationId: string,
  atMs: number,
): Promise<void> {
  await tx
    .updateTable('idp_configurations')
    .set({ last_login_at: new Date(atMs) })
    .where('organization_id', '=', organizationId)
    .execute();
}

function toProvider(row: Selectable<DB['idp_configurations']>): StoredProvider {
  return {
    id: row.id,
    organizationId: row.organization_id,
    preset: isPreset(row.provider_preset) ? row.provider_preset : 'GenericOidc',
    displayName: row.display_name,
    issuerUrl: row.issuer_url,
    clientId: row.client_id,
    clientSecret: row.client_secret ?? undefined,
    scopes: row.scopes,
    isEnabled: row.is_enabled,
    metadata: row.discovered === null ? undefined : providerMetadata.parse(row.discovered),
    discoveredAtMs: row.discovery_fetched_at?.getTime(),
    discoveryError: row.discovery_error ?? undefined,
  };
}
