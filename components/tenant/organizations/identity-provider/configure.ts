import { randomUUIDv7 } from 'node:crypto';
import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Outbound } from '#kit/outbound/outbound.ts';
import { appendAudit } from '../../audit/log/store.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Origin } from '../../requests/origin.ts';
import {
  DiscoveryError,
  discoverProvider,
  faultOfIssuer,
  type ProviderMetadata,
} from '../../sign-in/federation/upstream/discovery.ts';
import {
  authenticateBySecret,
  refusesClient,
  type Upstream,
  type UpstreamClient,
} from '../../sign-in/federation/upstream/upstream.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import { hasClientCredentials, type Preset } from './preset.ts';
import {
  deleteProvider,
  findProvider,
  lockProvider,
  type StoredProvider,
  saveDiscovery,
  saveProvider,
  setProviderEnabled,
} from './store.ts';

type Tx = Transactor<TenantDatabase>;

export interface ProviderDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly protection: Protection;
  readonly door: Outbound;
  readonly client: UpstreamClient;
}

/** Who changes the provider of an organisation. */
interface Change {
  readonly organizationId: string;
  readonly caller: Caller;
  readonly origin: Origin;
}

interface Settings {
  readonly providerPreset: Preset;
  readonly issuerUrl: string;
  readonly clientId: string;
  readonly clientSecret?: string | undefined;
  readonly displayName?: string | undefined;
  readonly scopes: readonly string[];
}

const dayMs = 86_400_000;
const placeOf = (id: string) => `idp_configurations.client_secret:${id}`;

/** @throws DISCOVERY_FAILED with the field when the provider cannot be read */
export async function discover({ door }: ProviderDeps, issuerUrl: string): Promise<ProviderMetadata> {
  try {
    return await discoverProvider(door, issuerUrl);
  } catch (error) {
    if (error instanceof DiscoveryError) throw issuerRefused(error.message, error);
    throw error;
  }
}

function issuerRefused(text: string, cause?: unknown) {
  const message = `The issuer cannot be used: ${text}.`;
  return refusal('DISCOVERY_FAILED', { message, details: { errors: { issuerUrl: [text] } }, cause });
}

/** @throws IDP_NOT_FOUND */
export async function getProvider({ db }: ProviderDeps, organizationId: string): Promise<StoredProvider> {
  const provider = await findProvider(db.read, organizationId);
  if (provider === undefined) throw refusal('IDP_NOT_FOUND');
  return provider;
}

/**
 * Writes the configuration and reads what the provider publishes. When that fails it is kept, switched off, with the
 * reason. A new issuer needs its secret: the old one is not shown to another server.
 *
 * @throws DISCOVERY_FAILED when the issuer cannot be one, CLIENT_SECRET_REQUIRED
 */
export async function putProvider(
  deps: ProviderDeps,
  settings: Settings,
  change: Change,
): Promise<StoredProvider> {
  const { db, clock, door } = deps;
  const { organizationId } = change;
  const fault = faultOfIssuer(door, settings.issuerUrl);
  if (fault !== undefined) throw issuerRefused(fault);
  const read = await tryDiscovery(deps, settings.issuerUrl);
  return db.transact(async (tx) => {
    const present = await lockProvider(tx, organizationId);
    const id = present?.id ?? randomUUIDv7();
    const atMs = clock.nowMs();
    await saveProvider(tx, {
      id,
      organizationId,
      preset: settings.providerPreset,
      displayName: settings.displayName ?? present?.displayName ?? new URL(settings.issuerUrl).host,
      issuerUrl: settings.issuerUrl,
      clientId: settings.clientId,
      clientSecret: sealedSecret(deps, settings, { id, present }),
      scopes: settings.scopes,
      isEnabled: present?.isEnabled === true && read.metadata !== undefined,
      ...read,
      atMs,
    });
    const action = present === undefined ? 'created' : 'updated';
    await audit(tx, change, { atMs, action, issuer: settings.issuerUrl });
    return requireStored(tx, organizationId);
  });
}

function sealedSecret(
  { protection }: ProviderDeps,
  { clientSecret, issuerUrl }: Settings,
  { id, present }: { readonly id: string; readonly present: StoredProvider | undefined },
): Buffer | undefined {
  if (clientSecret !== undefined) return protection.seal(Buffer.from(clientSecret), placeOf(id));
  if (present?.clientSecret === undefined || present.issuerUrl === issuerUrl) return present?.clientSecret;
  const errors = { clientSecret: ['is required with a new issuer'] };
  throw refusal('CLIENT_SECRET_REQUIRED', { details: { errors } });
}

async function tryDiscovery({ door, clock }: ProviderDeps, issuerUrl: string) {
  try {
    const metadata = await discoverProvider(door, issuerUrl);
    return { metadata, discoveredAtMs: clock.nowMs(), discoveryError: undefined };
  } catch (error) {
    if (!(error instanceof DiscoveryError)) throw error;
    return { metadata: undefined, discoveredAtMs: undefined, discoveryError: error.message };
  }
}

async function requireStored(tx: Tx, organizationId: string): Promise<StoredProvider> {
  const stored = await findProvider(tx, organizationId);
  if (stored === undefined) throw refusal('IDP_NOT_FOUND');
  return stored;
}

/** @throws IDP_NOT_FOUND */
export async function removeProvider({ db, clock }: ProviderDeps, change: Change): Promise<void> {
  await db.transact(async (tx) => {
    if (!(await deleteProvider(tx, change.organizationId))) throw refusal('IDP_NOT_FOUND');
    await audit(tx, change, { atMs: clock.nowMs(), action: 'deleted' });
  });
}

/** @throws IDP_NOT_FOUND, DISCOVERY_REQUIRED */
export async function toggleProvider(
  { db, clock }: ProviderDeps,
  isEnabled: boolean,
  change: Change,
): Promise<StoredProvider> {
  return db.transact(async (tx) => {
    const present = await lockProvider(tx, change.organizationId);
    if (present === undefined) throw refusal('IDP_NOT_FOUND');
    if (isEnabled && present.metadata === undefined) throw refusal('DISCOVERY_REQUIRED');
    const atMs = clock.nowMs();
    await setProviderEnabled(tx, change.organizationId, { isEnabled, atMs });
    await audit(tx, change, { atMs, action: isEnabled ? 'enabled' : 'disabled' });
    return { ...present, isEnabled };
  });
}

interface TestResult {
  readonly success: boolean;
  readonly message: string;
  readonly method: 'client_credentials' | 'discovery';
  readonly scopes: readonly string[];
}

/**
 * Tests a configuration: what the provider publishes now, and whether it takes the secret, where it tells.
 * @throws IDP_NOT_FOUND
 */
export async function testProvider(deps: ProviderDeps, organizationId: string): Promise<TestResult> {
  const provider = await getProvider(deps, organizationId);
  const read = await tryDiscovery(deps, provider.issuerUrl);
  if (read.metadata === undefined) {
    const message = `The provider cannot be read: ${read.discoveryError}.`;
    return { success: false, message, method: 'discovery', scopes: [] };
  }
  const { metadata } = read;
  await deps.db.transact((tx) => saveDiscovery(tx, { ...provider, ...read }));
  const scopes = metadata.scopes_supported ?? [];
  if (hasClientCredentials(provider.preset)) {
    const message = await trySecret(deps, upstreamOf(deps, { ...provider, metadata }));
    if (message !== undefined) {
      return { success: message === accepted, message, method: 'client_credentials', scopes };
    }
  }
  return { ...(await tryKeys(deps, metadata)), method: 'discovery', scopes };
}

const accepted = 'The provider was read and accepts the client.';

/** @returns undefined when the provider gives clients no tokens of their own, so that the secret stays untested */
async function trySecret({ client, log }: ProviderDeps, upstream: Upstream): Promise<string | undefined> {
  try {
    await client.testCredentials(upstream);
    return accepted;
  } catch (error) {
    log.info({ err: error, issuer: upstream.metadata.issuer }, 'the test of an identity provider failed');
    const isRefused = refusesClient(error);
    if (isRefused === undefined) return 'The token endpoint gave no usable answer.';
    return isRefused ? 'The provider refuses the client id or its secret.' : undefined;
  }
}

const keySet = z.object({ keys: z.array(z.unknown()).min(1) });

async function tryKeys({ door }: ProviderDeps, metadata: ProviderMetadata) {
  try {
    const { status, body } = await door.send(metadata.jwks_uri ?? '');
    if (status === 200 && keySet.safeParse(JSON.parse(body.toString('utf8'))).success) {
      const message =
        'The provider and its keys were read. It does not let the secret be tested without a sign-in.';
      return { success: true, message };
    }
  } catch (error) {
    return { success: false, message: `Its keys cannot be read: ${textOf(error)}.` };
  }
  return { success: false, message: 'Its keys cannot be read.' };
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** This installation as a client of an organisation's provider. */
function upstreamOf(
  { protection }: Pick<ProviderDeps, 'protection'>,
  provider: StoredProvider & { readonly metadata: ProviderMetadata },
): Upstream {
  const { id, metadata, clientId, clientSecret } = provider;
  const secret = clientSecret && protection.open(clientSecret, placeOf(id)).toString('utf8');
  const authentication = authenticateBySecret(metadata, secret);
  return {
    metadata,
    clientId,
    authenticate: async () => authentication,
    scopes: provider.scopes,
    isOpenId: true,
    usesPkce: true,
  };
}

/**
 * The provider that an organisation has switched on, with what it publishes: read again after a day; the earlier copy
 * serves while it cannot be read.
 */
export async function findEnabledProvider(
  deps: ProviderDeps,
  organizationId: string,
): Promise<{ readonly provider: StoredProvider; readonly upstream: Upstream } | undefined> {
  const provider = await findProvider(deps.db.read, organizationId);
  if (provider?.isEnabled !== true || provider.metadata === undefined) return undefined;
  const { metadata } = provider;
  const isFresh = deps.clock.nowMs() - (provider.discoveredAtMs ?? 0) < dayMs;
  const current = isFresh ? metadata : await readAgain(deps, provider, metadata);
  return { provider, upstream: upstreamOf(deps, { ...provider, metadata: current }) };
}

async function readAgain(
  deps: ProviderDeps,
  provider: StoredProvider,
  known: ProviderMetadata,
): Promise<ProviderMetadata> {
  const read = await tryDiscovery(deps, provider.issuerUrl);
  const isRead = read.metadata !== undefined;
  const stored = isRead
    ? read
    : { metadata: known, discoveredAtMs: provider.discoveredAtMs, discoveryError: read.discoveryError };
  await deps.db.transact((tx) => saveDiscovery(tx, { ...provider, ...stored }));
  if (!isRead) {
    const { organizationId } = provider;
    deps.log.warn(
      { organizationId, reason: read.discoveryError },
      'an identity provider cannot be read again',
    );
  }
  return read.metadata ?? known;
}

async function audit(
  tx: Tx,
  { organizationId, caller, origin }: Change,
  { atMs, ...details }: { readonly atMs: number; readonly action: string; readonly issuer?: string },
): Promise<void> {
  await appendAudit(tx, {
    organizationId,
    occurredAtMs: atMs,
    type: 'IdpConfigurationUpdated',
    identityId: caller.subject,
    platformUserId: caller.platformUserId,
    origin,
    success: true,
    details,
  });
}
