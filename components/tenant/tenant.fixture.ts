import { randomBytes } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { authPlugin } from '#kit/auth/auth.ts';
import type { Bus } from '#kit/bus/bus.ts';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { type Env, loadConfig } from '#kit/config/config.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import { type Hub, openHub } from '#kit/hub/hub.ts';
import { createTelemetry } from '#kit/telemetry/telemetry.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { type TestRuntime, testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { assembleTenant, type Tenant } from './assemble.ts';
import { tenantSettings } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { TenantDatabase } from './database/schema.ts';
import { mountInternalRoutes, mountRoutes } from './http.ts';
import { tenantHub } from './people/inbox/hub.ts';
import { fakeKeys } from './trust/keys/keys.fixture.ts';
import type { OrganizationKeys } from './trust/keys/organization-keys.ts';

export const adminEmail = 'admin@example.org';
export const adminPassword = 'blue kettle winter parade';

/** Files and settings of one tenant under test. */
export interface TenantFiles {
  readonly directory: string;
  readonly env: Env;
  secretOf(clientId: string): string;
  remove(): Promise<void>;
}

export async function makeTenantFiles(name: string, extra: Env = {}): Promise<TenantFiles> {
  const directory = await mkdtemp(join(tmpdir(), 'chy-tn-'));
  const secrets = join(directory, 'secrets');
  await mkdir(secrets);
  const secretOf = (clientId: string) => Buffer.alloc(32, clientId).toString('base64url');
  for (const clientId of ['service-register', 'service-wallet', 'service-operator']) {
    await writeFile(join(secrets, clientId), secretOf(clientId));
    await chmod(join(secrets, clientId), 0o600);
  }
  await writeFile(join(directory, 'password'), adminPassword);
  await writeFile(join(directory, 'key'), randomBytes(32));
  const env = {
    CHANCERY_INSTALLATION: testInstallation,
    CHANCERY_LISTEN_HOST: '127.0.0.1',
    CHANCERY_OPS_PORT: '0',
    CHANCERY_HTTPS_PORT: '0',
    CHANCERY_GRPC_PORT: '0',
    CHANCERY_TENANT_MTLS_PORT: '0',
    CHANCERY_TENANT_INTERNAL_PORT: '0',
    CHANCERY_WALLET_GRPC: '127.0.0.1:9',
    CHANCERY_WALLET_HTTPS: '127.0.0.1:9',
    CHANCERY_RATE_LIMIT_PROFILE: 'development',
    CHANCERY_ADMIN_EMAIL: adminEmail,
    CHANCERY_ADMIN_PASSWORD_FILE: join(directory, 'password'),
    CHANCERY_SERVICE_SECRETS_DIR: secrets,
    CHANCERY_PROTECTION_KEY_FILE: join(directory, 'key'),
    SPIFFE_ENDPOINT_SOCKET: 'unix:/nowhere',
    NATS_URL: 'nats://127.0.0.1:4222',
    DATABASE_URL: await testDatabase(name),
    ...extra,
  };
  return { directory, env, secretOf, remove: () => rm(directory, { recursive: true, force: true }) };
}

/** A tenant with both HTTP applications for inject, a manual clock and an in-process bus. */
export interface TestTenant extends Tenant {
  readonly db: Database<TenantDatabase>;
  readonly clock: ManualClock;
  readonly runtime: TestRuntime;
  readonly app: App;
  readonly internal: App;
  readonly files: TenantFiles;
  /** Opens the hub, which runs statements of its own. */
  startHub(): Promise<void>;
  stop(): Promise<void>;
}

export async function startTestTenant(
  name: string,
  extra: Env = {},
  keys?: OrganizationKeys,
): Promise<TestTenant> {
  const files = await makeTenantFiles(name, extra);
  return startReplica(files, keys);
}

/** With the files of a running tenant, it is another replica on the same database. */
export async function startReplica(
  files: TenantFiles,
  keys: OrganizationKeys = fakeKeys(),
): Promise<TestTenant> {
  const config = loadConfig(tenantSettings, files.env);
  const clock = manualClock(Date.now());
  const runtime = testRuntime('tenant', { clock });
  const { log, telemetry } = runtime;
  const db = await openDatabase<TenantDatabase>({
    url: config.DATABASE_URL,
    schema: 'tenant',
    log,
    telemetry,
    migrations,
  });
  const bus = localBus();
  const tenant = await assembleTenant({ config, runtime, db, bus, connectKeys: () => keys });
  await tenant.revocations.start();
  const app = createHttpServer({ runtime, title: 'Tenant' });
  const internalTelemetry = createTelemetry({ service: 'tenant-internal' });
  const internal = createHttpServer({
    runtime: { ...runtime, telemetry: internalTelemetry },
    title: 'Internal',
  });
  for (const each of [app, internal]) {
    authPlugin(each, tenant.authenticator);
    tenant.limiter.install(each);
  }
  let hub: Hub | undefined;
  mountRoutes(app, tenant.deps, () => {
    if (hub === undefined) throw new Error('the hub is not started');
    return hub;
  });
  mountInternalRoutes(internal, tenant.deps);
  const startHub = async () => {
    const { authenticator } = tenant;
    hub = await openHub(tenantHub(db.read), { runtime, bus, authenticator });
  };
  const stop = async () => {
    await hub?.stop();
    tenant.revocations.stop();
    await app.close();
    await internal.close();
    await db.close();
    await files.remove();
  };
  return { ...tenant, db, clock, runtime, app, internal, files, startHub, stop };
}

/** Moves the clock of a tenant, and waits until it has read revocations again. */
export async function passTime({ clock, revocations }: TestTenant, ms: number): Promise<void> {
  clock.advance(ms);
  await waitFor(
    () => {
      try {
        revocations.assertFresh();
        return true;
      } catch {
        return undefined;
      }
    },
    { what: 'revocations to be read again' },
  );
}

function localBus(): Bus {
  const listeners = new Map<string, Set<() => void>>();
  return {
    connected: true,
    publish: (subject) => {
      for (const listener of listeners.get(subject) ?? []) listener();
    },
    subscribe: (subject, listener) => {
      const set = listeners.get(subject) ?? new Set();
      listeners.set(subject, set.add(listener));
      return () => set.delete(listener);
    },
    close: async () => undefined,
  };
}

export interface TokenBody {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
  readonly token_type: string;
}

export function formOf(parameters: Readonly<Record<string, string>>) {
  return {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams(parameters).toString(),
  } as const;
}

export function bearer(token: string) {
  return { authorization: `Bearer ${token}` };
}

/** Marks the address of the only account that has it as verified. */
export async function verifyAddress(tenant: Pick<TestTenant, 'db'>, email: string): Promise<void> {
  await tenant.db.transact((tx) =>
    tx.updateTable('platform_users').set({ email_verified: true }).where('email', '=', email).execute(),
  );
}

/** Gets tokens with the password grant. */
export async function grant(
  tenant: Pick<TestTenant, 'app'>,
  username: string = adminEmail,
  password: string = adminPassword,
): Promise<TokenBody> {
  const form = formOf({ grant_type: 'password', username, password });
  const answer = await tenant.app.inject({ ...form, url: '/api/service-auth/token' });
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${answer.body}`);
  return answer.json<TokenBody>();
}
