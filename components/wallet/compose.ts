import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import { startRefusalLog } from '#kit/audit/audit.ts';
import { type Job, startJob, startJobs } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import { createDownloads, type Downloads } from '#kit/files/downloads.ts';
import { type Hub, openHub } from '#kit/hub/hub.ts';
import type { RpcServer } from '#kit/rpc/rpc.ts';
import {
  createService,
  openSession,
  openStore,
  type ServiceBase,
  type ServiceParts,
} from '#kit/service/service.ts';
import {
  EventService,
  ServiceWalletService,
  SystemSignerService,
  WalletOwnerService,
  WalletService,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import {
  connectCredentials,
  connectFileChunks,
  connectMembers,
  connectRecords,
  noCredentials,
} from './clients.ts';
import type { WalletConfig } from './config.ts';
import { fileKek, type KekProvider } from './custody/kek.ts';
import { Keyring } from './custody/keyring.ts';
import { createRewrapping } from './custody/rewrap/rewrap.ts';
import { RsaGenerator } from './custody/rsa.ts';
import { migrations } from './database/migrations/list.ts';
import type { WalletDatabase } from './database/schema.ts';
import type { Records } from './encryption/files/open-file.ts';
import { encryptionHandlers } from './encryption/rpc.ts';
import { refusal } from './errors.ts';
import { eventHandlers, mayReadEvents } from './events/rpc.ts';
import { mountRoutes, type WalletHttpDeps } from './http.ts';
import { walletHandlers } from './signing/rpc.ts';
import { createSignerEvents } from './system-signer/events.ts';
import { controlKey } from './system-signer/keys.ts';
import { systemSignerHandlers } from './system-signer/rpc.ts';
import type { SignControlDeps } from './system-signer/sign-control.ts';
import { createSignerStore } from './system-signer/store.ts';
import { upkeepJobs } from './upkeep.ts';
import type { CredentialJudge } from './wallets/credentials/judge.ts';
import { type StatusDeps, statusJob } from './wallets/credentials/status.ts';
import { walletHub } from './wallets/hub/hub.ts';
import type { Members } from './wallets/organization/derive-key.ts';
import { mayReadOwners, ownerHandlers } from './wallets/owners/rpc.ts';
import { findSecret } from './wallets/records/store.ts';
import { mayOwnWallets, serviceWalletHandlers } from './wallets/services/rpc.ts';

/** The largest request, of 256 wrapped keys of RSA or with long party information, has about 700 KiB. */
const maxWalletRequestBytes = 1024 * 1024;
const rewrapEveryMs = 60_000;

interface Parts extends ServiceParts {
  readonly deps: WalletHttpDeps & SignControlDeps;
  readonly hub: Hub;
}

/**
 * Builds the wallet service; resolves when it listens, the key for register control exists and tokens can be verified.
 */
export const createWallet = createService<WalletConfig, Parts>({
  service: 'wallet',
  title: 'Chancery wallet service',
  bodyLimitBytes: 2 * 1024 * 1024,
  assemble,
  rpc: addServices,
  routes: (app, { deps, hub }) => mountRoutes(app, deps, () => hub),
  // Wakes consumers of the event log that could not reach this service before it listened.
  listening: (_base, { deps }) => deps.notify(),
  stopping: ({ hub }) => hub.stop(),
});

async function assemble(base: ServiceBase<WalletConfig>): Promise<Parts> {
  const { config, runtime, workload, bus, cleanup } = base;
  const { log, clock, telemetry, installation } = runtime;
  const kek = openKek(config.CHANCERY_KEK_FILE);
  const db = await openStore<WalletDatabase>(base, { schema: 'wallet', migrations });
  const { authenticator, token } = await openSession(base);
  const deps = {
    db,
    kek,
    keyring: new Keyring({ kek, clock, load: (walletId) => findSecret(db.read, walletId) }),
    rsa: new RsaGenerator(),
    notify: () => bus.publish(SUBJECTS.walletEvents),
    clock,
    log,
    refusals: startRefusalLog({ ...base, address: config.CHANCERY_TENANT_GRPC, token }),
    ...connectFiles(base, token),
    members: openMembers(base, token),
    judge: openJudge(base, token),
    deletionHours: config.CHANCERY_WALLET_DELETION_HOURS,
    verifier: createVerifier(nodeEd25519()),
    store: createSignerStore(db.pool),
    events: createSignerEvents(telemetry),
    installation,
    controlPerMinute: config.CHANCERY_CONTROL_SIGNATURES_PER_MINUTE,
    checkpointsPerMinute: config.CHANCERY_CHECKPOINT_SIGNATURES_PER_MINUTE,
  };
  await controlKey(deps);
  const upkeep = startJobs([...upkeepJobs(db), ...credentialJobs(config, deps)], runtime);
  cleanup.add('upkeep', () => upkeep.stop());
  startRewrapping(base, { db, kek });
  const hub = await openHub(walletHub({ db, clock }), { runtime, bus, authenticator, workload });
  cleanup.add('hub', () => hub.stop());
  return { authenticator, deps, hub };
}

/** The keys of the list; the first one wraps. */
function openKek(files: WalletConfig['CHANCERY_KEK_FILE']): KekProvider {
  const [first = Buffer.alloc(0), ...others] = files.map((file) => file.reveal());
  return fileKek(first, ...others);
}

function openMembers(
  { config, runtime, workload, cleanup }: ServiceBase<WalletConfig>,
  token: () => Promise<string>,
): Members {
  const members = connectMembers(config.CHANCERY_TENANT_GRPC, { runtime, workload, token });
  cleanup.add('members', () => members.close());
  return members;
}

/** The credential service, where the installation has one. */
function openJudge(
  { config, runtime, workload, cleanup }: ServiceBase<WalletConfig>,
  token: () => Promise<string>,
): CredentialJudge {
  const { CHANCERY_CREDENTIAL_GRPC: address } = config;
  if (address === undefined) return noCredentials;
  const judge = connectCredentials(address, { runtime, workload, token });
  cleanup.add('credential client', () => judge.close());
  return judge;
}

function credentialJobs({ CHANCERY_CREDENTIAL_GRPC: address }: WalletConfig, deps: StatusDeps): Job[] {
  return address === undefined ? [] : [statusJob(deps)];
}

/** Wraps data keys under the first key of the list again, at the start and every minute. */
function startRewrapping(
  { runtime, cleanup, checks }: ServiceBase<WalletConfig>,
  { db, kek }: { readonly db: Database<WalletDatabase>; readonly kek: KekProvider },
): void {
  const { log, telemetry } = runtime;
  const rewrapping = createRewrapping({ db, kek, log, telemetry });
  checks.push({ name: 'key-encryption keys', degrades: true, check: () => rewrapping.assertDone() });
  const run = (signal: AbortSignal) => rewrapping.run(signal);
  const job = startJob({ name: 'rewrap-data-keys', everyMs: rewrapEveryMs, firstMs: 0, run }, runtime);
  cleanup.add('re-wrapping', () => job.stop());
}

/** Sealed transactions, and the content of their files where the installation has a blueprint service. */
function connectFiles(
  { config, runtime, workload, cleanup }: ServiceBase<WalletConfig>,
  token: () => Promise<string>,
): { readonly records: Records; readonly downloads: Downloads } {
  const options = { runtime, workload, token };
  const records = connectRecords(config.CHANCERY_REGISTER_GRPC, options);
  cleanup.add('register client', () => records.close());
  const { CHANCERY_BLUEPRINT_GRPC: blueprint } = config;
  const chunks = blueprint === undefined ? undefined : connectFileChunks(blueprint, options);
  cleanup.add('blueprint client', () => chunks?.close());
  return { records, downloads: createDownloads({ chunks, telemetry: runtime.telemetry, refusal }) };
}

function addServices(server: RpcServer, { deps }: Parts): void {
  // Every service of the installation may call; the signing component authorises in its handlers, which write the audit
  // row.
  const handlers = { ...walletHandlers(deps), ...encryptionHandlers(deps) };
  const rules = { allow: () => true, requireToken: true, maxRequestBytes: maxWalletRequestBytes };
  server.add(WalletService, handlers, rules);
  server.add(SystemSignerService, systemSignerHandlers(deps), { allow: () => true });
  server.add(WalletOwnerService, ownerHandlers(deps), { allow: mayReadOwners, requireToken: true });
  server.add(ServiceWalletService, serviceWalletHandlers(deps), { allow: mayOwnWallets, requireToken: true });
  server.add(EventService, eventHandlers(deps.db.read), { allow: mayReadEvents, requireToken: true });
}
