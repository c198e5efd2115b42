import { createVerifier, type Verifier } from '#core/crypto/verify.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { loadEd25519 } from '#kit/crypto/ed25519.ts';
import { createVerifyPool } from '#kit/crypto/verify-pool.ts';
import type { Database } from '#kit/db/db.ts';
import { type Hub, openHub } from '#kit/hub/hub.ts';
import type { RpcServer } from '#kit/rpc/rpc.ts';
import {
  createService,
  openSession,
  openStore,
  type ServiceBase,
  type ServiceParts,
} from '#kit/service/service.ts';
import { addWorkflowLedgerService } from './blueprints/workflows/rpc.ts';
import { connectRevocations } from './clients/connect-revocations.ts';
import { connectValidators } from './clients/connect-validators.ts';
import { connectWallets } from './clients/connect-wallets.ts';
import type { RegisterConfig } from './config.ts';
import { migrations } from './database/migrations/list.ts';
import type { RegisterSchema } from './database/schema.ts';
import { mountRoutes } from './http.ts';
import { addLedgerService } from './ledger/service/rpc.ts';
import { addRecordService } from './ledger/transactions/rpc.ts';
import { assembleLedger, type Ledger } from './ledger.ts';
import { startRevocations } from './queries/participants/revocations.ts';
import { addDirectoryService } from './registers/directory/rpc.ts';
import { addEventService } from './registers/feed/rpc.ts';
import { registerHub } from './registers/hub/hub.ts';
import { startHousekeeping } from './system/housekeeping/jobs.ts';

interface Parts extends ServiceParts {
  readonly ledger: Ledger;
  readonly database: Database<RegisterSchema>;
  readonly verifier: Verifier;
  readonly clock: Clock;
  readonly hub: Hub;
}

/** Builds the register service; resolves when it listens, its schema is migrated and tokens can be verified. */
export const createRegister = createService<RegisterConfig, Parts>({
  service: 'register',
  title: 'Chancery register service',
  assemble,
  rpc: addServices,
  routes: (app, { ledger, hub }) => mountRoutes(app, ledger.deps, hub),
  stopping: ({ hub }) => hub.stop(),
});

async function assemble(base: ServiceBase<RegisterConfig>): Promise<Parts> {
  const { config, runtime, workload, bus, cleanup, checks } = base;
  const { clock } = runtime;
  const database = await openStore<RegisterSchema>(base, { schema: 'register', migrations });
  const { authenticator, token } = await openSession(base);
  const peer = { runtime, workload, token };
  const wallets = connectWallets(config.CHANCERY_WALLET_GRPC, peer);
  cleanup.add('wallet client', () => wallets.close());
  const validators = connectValidators(peer);
  cleanup.add('validator clients', () => validators.close());
  const pool = createVerifyPool({ workers: config.CHANCERY_VERIFY_WORKERS });
  cleanup.add('verify pool', () => pool.close());
  const verifier = createVerifier(loadEd25519('auto').backend);
  const parts = { database, wallets, validators, verifier, pool, runtime, bus };
  const ledger = assembleLedger({ ...parts, settings: config });
  cleanup.add('ledger', () => ledger.stop());
  checks.push({ name: 'projection', degrades: true, check: () => ledger.projector.assertWorking() });
  cleanup.add('housekeeping', startHousekeeping({ ...runtime, database }));
  const unsubscribe = bus.subscribe(SUBJECTS.registerEvents, () => ledger.confirmations.recheck());
  cleanup.add('register events', unsubscribe);
  followRevocations(base, database, connectRevocations(config.CHANCERY_WALLET_GRPC, peer));
  const hub = await openHub(registerHub(database.read), { runtime, bus, authenticator, workload });
  cleanup.add('hub', () => hub.stop());
  return { authenticator, ledger, database, verifier, clock, hub };
}

function followRevocations(
  { runtime, cleanup }: ServiceBase<RegisterConfig>,
  db: Database<RegisterSchema>,
  source: ReturnType<typeof connectRevocations>,
): void {
  const { log, telemetry } = runtime;
  cleanup.add('revocations client', () => source.close());
  const applied = telemetry.counter('key_revocations_total', 'Revoked keys of wallets that were read');
  const failures = telemetry.counter('key_revocation_failures_total', 'Reads of revoked keys that failed');
  const follower = startRevocations(
    { db, log: source, onApplied: (count) => applied.inc(count) },
    { log, onFailed: () => failures.inc() },
  );
  cleanup.add('revocations', () => follower.stop());
}

function addServices(server: RpcServer, { ledger, database, verifier, clock }: Parts): void {
  const { writeDocket, segments } = ledger;
  addLedgerService(server, { database, verifier, clock, writeDocket, segments });
  addRecordService(server, { db: database.read, segments });
  addWorkflowLedgerService(server, { ...ledger.deps.transactions, ...ledger.deps.proofs });
  addEventService(server, database.read);
  addDirectoryService(server, { database, clock, onAnnounced: ledger.onAnnounced });
}
