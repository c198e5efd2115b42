import type { z } from 'zod';
import { clientIdOf } from '#core/identity/services.ts';
import {
  type Authenticator,
  authPlugin,
  type TenantSession,
  type TenantSessionOptions,
  tenantSession,
} from '#kit/auth/auth.ts';
import { type Bus, busOf, connectBus } from '#kit/bus/bus.ts';
import type { commonSettings, databaseSettings } from '#kit/config/config.ts';
import { type Database, type Migration, openDatabase } from '#kit/db/db.ts';
import { type App, createHttpServer, listenHttp } from '#kit/http/http.ts';
import type { Create } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter, type RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { identityCheck, type Workload } from '#kit/workload/workload.ts';
import { createProcess, openIdentity, type ProcessBase, type ProcessParts } from './process.ts';

/** Settings that every service has. */
type ServiceConfig = z.output<z.ZodObject<typeof commonSettings>>;

/**
 * What is open before a service is assembled. Only `assemble` receives all of it; areas receive the parts that they
 * need.
 */
export interface ServiceBase<C> extends ProcessBase<C> {
  /** The client id that the service's tokens carry. */
  readonly clientId: string;
  readonly workload: Workload;
  readonly bus: Bus;
}

/** Parts of every assembled service; a service adds its own. */
export interface ServiceParts extends ProcessParts {
  /** Verifies the tokens of calls over HTTP and gRPC. */
  readonly authenticator: Authenticator;
  /** Throughput limits of its routes; when absent, those of the profile in its settings. */
  readonly limiter?: RateLimiter;
}

/** Addresses of the listeners, `host:port`. */
interface ServiceAddresses {
  readonly grpc: string;
  readonly https: string;
  readonly [listener: string]: string;
}

/** Declaration of a service; `createService` opens it. */
interface ServiceDeclaration<C extends ServiceConfig, P extends ServiceParts> {
  /** Its name in the catalogue of services. */
  readonly service: string;
  /** Name of this member of a service with several; it is the member's client id too. */
  readonly member?: (config: C) => string;
  /** Title of its OpenAPI document. */
  readonly title: string;
  /** Largest request body; 1 MiB when absent. */
  readonly bodyLimitBytes?: number;
  /** The service's own routes answer `/health` on the HTTPS listener, not the kit. */
  readonly ownHealth?: true;
  /** Builds the parts: store, session, clients, areas, jobs. */
  readonly assemble: (base: ServiceBase<C>) => Promise<P>;
  /** Adds its gRPC services; a service that no other one calls has none. */
  readonly rpc?: (server: RpcServer, parts: P) => void;
  /** Mounts its routes; `grpc` is the address of its gRPC listener. */
  readonly routes: (app: App, parts: P, grpc: string) => void;
  /** Opens further listeners; returns their addresses by name. */
  readonly listen?: (base: ServiceBase<C>, parts: P) => Promise<Readonly<Record<string, string>>>;
  /** Runs when the service listens, before it is ready. */
  readonly listening?: (base: ServiceBase<C>, parts: P, addresses: ServiceAddresses) => Promise<void> | void;
  /** Runs before its listeners close. */
  readonly stopping?: (parts: P) => Promise<void>;
}

/**
 * Builds the `create` of a service. It opens, in this order: the operations listener, identity, bus, the declared
 * parts, gRPC, HTTPS, further listeners. When it throws, everything opened is closed, as `stop` does.
 */
export function createService<C extends ServiceConfig, P extends ServiceParts>(
  declaration: ServiceDeclaration<C, P>,
): Create<C> {
  return createProcess<C, Assembled<C, P>>({
    name: (config) => declaration.member?.(config) ?? declaration.service,
    assemble: async (process) => {
      const clientId = declaration.member?.(process.config) ?? clientIdOf(declaration.service);
      const base = await openBase(clientId, process);
      const parts = await declaration.assemble(base);
      const { liveness } = parts;
      return { base, parts, ...(liveness === undefined ? {} : { liveness }) };
    },
    listen: (_process, assembled) => listenAll(declaration, assembled),
    stopping: async ({ parts }) => declaration.stopping?.(parts),
  });
}

interface Assembled<C, P> extends ProcessParts {
  readonly base: ServiceBase<C>;
  readonly parts: P;
}

async function openBase<C extends ServiceConfig>(
  clientId: string,
  process: ProcessBase<C>,
): Promise<ServiceBase<C>> {
  const { config, runtime, cleanup, checks } = process;
  const workload = await openIdentity(process);
  checks.push(identityCheck(workload, runtime));
  const bus = await connectBus({ ...busOf(config), name: clientId, log: runtime.log });
  cleanup.add('bus', () => bus.close());
  return { ...process, clientId, workload, bus };
}

/** Opens the schema of a service that stores, brings it up to date, and adds the readiness check `database`. */
export async function openStore<DB>(
  base: ServiceBase<z.output<z.ZodObject<typeof databaseSettings>>>,
  store: { readonly schema: string; readonly migrations: readonly Migration[] },
): Promise<Database<DB>> {
  const { config, runtime, cleanup, checks, start } = base;
  const database = await start.untilAvailable('PostgreSQL', () =>
    openDatabase<DB>({
      url: config.DATABASE_URL,
      maxConnections: config.CHANCERY_DATABASE_CONNECTIONS,
      log: runtime.log,
      telemetry: runtime.telemetry,
      ...store,
    }),
  );
  cleanup.add('database', () => database.close());
  checks.push({ name: 'database', check: () => database.ping() });
  return database;
}

/** Opens the session at the tenant service, starts its revocations, and adds the readiness check `revocations`. */
export async function openSession(base: ServiceBase<TenantSessionOptions['config']>): Promise<TenantSession> {
  const { cleanup, checks, start } = base;
  const session = tenantSession(base);
  cleanup.add('tenant session', () => session.stop());
  await start.untilAvailable('the tenant service', () => session.revocations.start());
  checks.push({ name: 'revocations', check: () => session.revocations.assertFresh() });
  return session;
}

async function listenAll<C extends ServiceConfig, P extends ServiceParts>(
  declaration: ServiceDeclaration<C, P>,
  { base, parts }: Assembled<C, P>,
): Promise<ServiceAddresses> {
  const grpc = await listenRpc(declaration, base, parts);
  const https = await listenRoutes(declaration, base, { parts, grpc });
  const further = (await declaration.listen?.(base, parts)) ?? {};
  const addresses = { ...further, grpc, https };
  await declaration.listening?.(base, parts, addresses);
  return addresses;
}

async function listenRpc<C extends ServiceConfig, P extends ServiceParts>(
  declaration: ServiceDeclaration<C, P>,
  { config, runtime, workload, cleanup }: ServiceBase<C>,
  parts: P,
): Promise<string> {
  const host = config.CHANCERY_LISTEN_HOST;
  const server = createRpcServer({
    runtime,
    workload,
    host,
    port: config.CHANCERY_GRPC_PORT,
    authenticate: (token) => parts.authenticator.authenticate(token),
  });
  declaration.rpc?.(server, parts);
  cleanup.add('gRPC', () => server.stop());
  return `${host}:${await server.listen()}`;
}

async function listenRoutes<C extends ServiceConfig, P extends ServiceParts>(
  declaration: ServiceDeclaration<C, P>,
  base: ServiceBase<C>,
  { parts, grpc }: { readonly parts: P; readonly grpc: string },
): Promise<string> {
  const { config, runtime, workload, cleanup, checks } = base;
  const { title, bodyLimitBytes, ownHealth } = declaration;
  const host = config.CHANCERY_LISTEN_HOST;
  const app = createHttpServer({
    runtime,
    title,
    https: workload,
    trustForwarded: true,
    ...(bodyLimitBytes === undefined ? {} : { bodyLimitBytes }),
    ...(ownHealth === true ? {} : { checks }),
  });
  authPlugin(app, parts.authenticator);
  const profile = config.CHANCERY_RATE_LIMIT_PROFILE;
  const limiter = parts.limiter ?? createRateLimiter({ profile, clock: runtime.clock });
  limiter.install(app);
  declaration.routes(app, parts, grpc);
  cleanup.add('HTTPS', () => app.close());
  return `${host}:${await listenHttp(app, { host, port: config.CHANCERY_HTTPS_PORT })}`;
}
