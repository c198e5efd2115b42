import { randomBytes } from 'node:crypto';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import type { Role } from '#core/identity/roles.ts';
import type { Refused } from '#kit/audit/audit.ts';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { createDownloads, type FileChunks } from '#kit/files/downloads.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import type { Hub } from '#kit/hub/hub.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { testCaller } from '#kit/testing/callers.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { type TestRuntime, testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { noCredentials } from '../clients.ts';
import { fileKek, type KekProvider } from '../custody/kek.ts';
import { Keyring } from '../custody/keyring.ts';
import { RsaGenerator } from '../custody/rsa.ts';
import { migrations } from '../database/migrations/list.ts';
import type { WalletDatabase } from '../database/schema.ts';
import type { Records } from '../encryption/files/open-file.ts';
import { refusal } from '../errors.ts';
import { mountRoutes, type WalletHttpDeps } from '../http.ts';
import { createSignerEvents } from '../system-signer/events.ts';
import type { SignControlDeps } from '../system-signer/sign-control.ts';
import { createSignerStore } from '../system-signer/store.ts';
import type { CredentialJudge } from '../wallets/credentials/judge.ts';
import { findSecret } from '../wallets/records/store.ts';

export const startMs = Date.UTC(2026, 10, 21, 12);

/** One replica of the wallet service without listeners: its database, its keys, its use cases. */
export interface Replica {
  readonly db: Database<WalletDatabase>;
  readonly runtime: TestRuntime;
  readonly clock: ManualClock;
  readonly deps: WalletHttpDeps & SignControlDeps & { readonly kek: KekProvider };
  /** Members of organisations, `organisation user`; others are unknown. */
  readonly members: Set<string>;
  /** Refusals reported to the audit logs of organisations. */
  readonly refused: readonly Refused[];
  /** Number of notifications of the event log. */
  notifications(): number;
  close(): Promise<void>;
}

export interface ReplicaOptions {
  readonly url: string;
  readonly kek: Buffer;
  /** further keys that unwrap */
  readonly formerKeks?: readonly Buffer[];
  readonly controlPerMinute?: number;
  readonly checkpointsPerMinute?: number;
  readonly deletionHours?: number;
  /** Sealed transactions; none when absent. */
  readonly records?: Records;
  /** Content of files; no service has any when absent. */
  readonly chunks?: FileChunks;
  /** The credential service; there is none when absent. */
  readonly judge?: CredentialJudge;
}

const noRecords: Records = {
  getSealed: async () => {
    throw new AppError('not_found', 'TX_NOT_FOUND', 'there are none');
  },
};

export async function openReplica(options: ReplicaOptions): Promise<Replica> {
  const clock = manualClock(startMs);
  const runtime = testRuntime('service-wallet', { clock });
  const { log, telemetry } = runtime;
  const db = await openDatabase<WalletDatabase>({
    url: options.url,
    schema: 'wallet',
    log,
    telemetry,
    migrations,
  });
  const kek = fileKek(options.kek, ...(options.formerKeks ?? []));
  const keyring = new Keyring({ kek, clock, load: (id) => findSecret(db.read, id) });
  let notifications = 0;
  const refused: Refused[] = [];
  const members = new Set<string>();
  const deps = {
    db,
    kek,
    keyring,
    rsa: new RsaGenerator(),
    notify: () => {
      notifications += 1;
    },
    clock,
    log,
    members: {
      find: async (organizationId: string, userId: string) =>
        members.has(`${organizationId} ${userId}`) ? userId : undefined,
    },
    deletionHours: options.deletionHours ?? 24,
    refusals: { count: (one: Refused) => void refused.push(one) },
    verifier: createVerifier(nodeEd25519()),
    store: createSignerStore(db.pool),
    events: createSignerEvents(telemetry),
    installation: testInstallation,
    controlPerMinute: options.controlPerMinute ?? 10,
    checkpointsPerMinute: options.checkpointsPerMinute ?? 600,
    judge: options.judge ?? noCredentials,
    records: options.records ?? noRecords,
    downloads: createDownloads({ chunks: options.chunks, telemetry, refusal }),
  };
  return {
    db,
    runtime,
    clock,
    deps,
    refused,
    members,
    notifications: () => notifications,
    close: () => db.close(),
  };
}

/** A fresh database and one replica on it. */
export async function openFixture(
  name: string,
  others: Pick<ReplicaOptions, 'records' | 'chunks' | 'judge'> = {},
): Promise<Replica & ReplicaOptions> {
  const options = { url: await testDatabase(name), kek: randomBytes(32), ...others };
  return { ...(await openReplica(options)), ...options };
}

export const person = (change: Partial<Caller> = {}): Caller => testCaller(startMs, change);

export function administrator(organizationId: string, roles: readonly Role[] = ['Administrator']): Caller {
  return person({ organizationId, roles });
}

/** The routes and their policies, where `callers` maps a bearer token to the caller; an unknown token has none. */
export function routesFor(replica: Replica, callers: ReadonlyMap<string, Caller>): App {
  const app = createHttpServer({ runtime: replica.runtime, title: 'wallet' });
  app.addHook('onRequest', async (request) => {
    const caller = callers.get(request.headers.authorization ?? '');
    request.caller = caller;
    const { policy = 'Anonymous' } = request.routeOptions.config;
    if (caller !== undefined && decide(policy, caller) !== 'allow') {
      throw new AppError('forbidden', 'FORBIDDEN', 'the policy refuses the caller');
    }
  });
  mountRoutes(app, replica.deps, noHub);
  return app;
}

/** The hub of replicas that have none, for `mountRoutes`. */
export function noHub(): Hub {
  throw new Error('this replica has no hub');
}

/** A gRPC context as the server makes it after it verified certificate and tokens. */
export function rpcContext(
  clientId: string,
  change: { canSignSystem?: boolean; subject?: Caller } = {},
): RpcContext {
  const { canSignSystem = true, subject } = change;
  const caller = person({
    kind: 'service',
    tier: 'service',
    clientId,
    canSignSystem,
    platformUserId: undefined,
  });
  return {
    peer: { clientId, spiffeId: `spiffe://${testInstallation}/service/${clientId}` },
    caller,
    signal: new AbortController().signal,
    ...(subject !== undefined && { subject }),
  };
}
