import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#kit/clock/clock.ts';
import { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import type { Logger } from '#kit/log/log.ts';
import { startIssuer } from '../svid-issuer/compose.ts';
import { startBroker } from './bus/broker.ts';
import { type ComponentDatabases, prepareEmbedded, prepareExternal } from './database/store.ts';
import type { PassedSettings } from './layout.ts';
import { startPostgres } from './postgres/embedded.ts';
import { type StateDirectory, writePrivate } from './state/directory.ts';

/** External replacements of embedded parts; each may be given independently. */
export interface ExternalParts {
  readonly databaseUrl?: string | undefined;
  readonly natsUrl?: string | undefined;
  readonly spiffeSocket?: string | undefined;
  /** Addresses that the validators announce instead of their own, in their order. */
  readonly validatorEndpoints?: readonly string[] | undefined;
  /** `CHANCERY_KEY_FILTERS` of the validators; their default when absent. */
  readonly keyFilters?: string | undefined;
  /** Settings that are passed on as they are. */
  readonly settings?: PassedSettings | undefined;
}

/** Database, bus and identity, embedded or external. */
export interface Infrastructure {
  readonly databases: ComponentDatabases;
  readonly natsUrl: string;
  readonly sockets: Readonly<Record<string, string>>;
  /** Operating-system processes that belong to it. */
  readonly processes: readonly { readonly name: string; readonly pid: number }[];
  /** Which parts are embedded, for the health output and the screen. */
  readonly embedded: { readonly database: boolean; readonly bus: boolean; readonly identity: boolean };
  /** Resolves with a reason when an embedded part ends by itself. */
  readonly broken: Promise<string>;
  stop(): Promise<void>;
}

interface InfrastructureOptions {
  readonly directory: StateDirectory;
  readonly installation: string;
  /** Client ids that get an SVID. */
  readonly clientIds: readonly string[];
  /** Services that get a role and a schema in the database. */
  readonly stores: readonly string[];
  readonly external: ExternalParts;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Starts the parts that are not external: identity, database and bus, in this order. */
export async function startInfrastructure(options: InfrastructureOptions): Promise<Infrastructure> {
  const { external, log } = options;
  const cleanup = new Cleanup();
  try {
    const sockets = await identity(options, cleanup);
    const database = await databases(options, cleanup);
    const natsUrl = await bus(options, cleanup);
    return {
      databases: database.databases,
      natsUrl,
      sockets,
      processes: database.pid === undefined ? [] : [{ name: 'postgres', pid: database.pid }],
      embedded: {
        database: external.databaseUrl === undefined,
        bus: external.natsUrl === undefined,
        identity: external.spiffeSocket === undefined,
      },
      broken: database.broken,
      stop: () => cleanup.run(log),
    };
  } catch (error) {
    await cleanup.run(log);
    throw error;
  }
}

async function identity(
  options: InfrastructureOptions,
  cleanup: Cleanup,
): Promise<Readonly<Record<string, string>>> {
  const { directory, installation, clientIds, external, log, clock } = options;
  const { spiffeSocket } = external;
  if (spiffeSocket !== undefined) {
    return Object.fromEntries(clientIds.map((clientId) => [clientId, spiffeSocket]));
  }
  const issuer = await startIssuer({
    dir: directory.issuer,
    socketDir: directory.sockets,
    installation,
    services: [...clientIds],
    svidTtlSeconds: 3600,
    log,
    clock,
  });
  cleanup.add('issuer', () => issuer.stop());
  return issuer.sockets;
}

interface StartedDatabase {
  readonly databases: ComponentDatabases;
  readonly pid?: number;
  readonly broken: Promise<string>;
}

async function databases(options: InfrastructureOptions, cleanup: Cleanup): Promise<StartedDatabase> {
  const { directory, stores, external, log } = options;
  if (external.databaseUrl !== undefined) {
    const secretOf = (name: string, make: () => string): string =>
      keepText(join(directory.secrets, name), make);
    return {
      databases: await prepareExternal(external.databaseUrl, stores, secretOf),
      broken: new Promise(() => undefined),
    };
  }
  const postgres = await startPostgres({ dataDir: directory.postgres, socketDir: directory.sockets, log });
  cleanup.add('postgres', () => postgres.stop());
  return {
    databases: await prepareEmbedded((database, role) => postgres.url(database, role), stores),
    pid: postgres.pid,
    broken: postgres.ended,
  };
}

function keepText(path: string, make: () => string): string {
  if (!existsSync(path)) {
    writePrivate(path, make());
  }
  return readFileSync(path, 'utf8').trim();
}

async function bus(options: InfrastructureOptions, cleanup: Cleanup): Promise<string> {
  const { external, log } = options;
  if (external.natsUrl !== undefined) {
    return external.natsUrl;
  }
  const broker = await startBroker({ host: '127.0.0.1', port: 0, log });
  cleanup.add('bus', () => broker.stop());
  return broker.url;
}
