import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '#kit/log/log.ts';
import { type Broker, startBroker } from '../../components/standalone/bus/broker.ts';
import { type Postgres, startPostgres } from '../../components/standalone/postgres/embedded.ts';

/** A database server and a bus that a test owns and takes away at will. */
export interface GivenParts {
  readonly env: { readonly DATABASE_URL: string; readonly NATS_URL: string };
  stopDatabase(): Promise<void>;
  /** SIGKILL to the server. */
  crashDatabase(): Promise<void>;
  startDatabase(): Promise<void>;
  stopBus(): Promise<void>;
  startBus(): Promise<void>;
  remove(): Promise<void>;
}

/** Starts PostgreSQL on a unix socket and a broker on a free port of loopback, outside of any installation. */
export async function startGivenParts(): Promise<GivenParts> {
  const root = mkdtempSync(join(tmpdir(), 'chancery-given-'));
  const log = createLogger({ service: 'given-parts', level: 'silent' });
  const place = { dataDir: join(root, 'data'), socketDir: join(root, 's'), log };
  let database: Postgres = await startPostgres(place);
  let bus: Broker = await startBroker({ host: '127.0.0.1', port: 0, log });
  const { port, url } = bus;
  return {
    env: { DATABASE_URL: database.url('postgres'), NATS_URL: url },
    stopDatabase: () => database.stop(),
    crashDatabase: async () => {
      process.kill(database.pid, 'SIGKILL');
      await database.ended;
    },
    startDatabase: async () => {
      database = await startPostgres(place);
    },
    stopBus: () => bus.stop(),
    startBus: async () => {
      bus = await startBroker({ host: '127.0.0.1', port, log });
    },
    remove: async () => {
      await bus.stop();
      await database.stop();
      rmSync(root, { recursive: true, force: true });
    },
  };
}
