import type { z } from 'zod';
import { clientIdOf, type ServiceName } from '#core/identity/services.ts';
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
import {
  type App,
  createHttpServer,
  createOpsServer,
  listenHttp,
  type ReadinessCheck,
} from '#kit/http/http.ts';
import { Cleanup, type Component, type Create, type Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRateLimiter, type RateLimiter } from '#kit/rate-limit/rate-limit.ts';
import { createRpcServer, type RpcServer } from '#kit/rpc/rpc.ts';
import { connectWorkload, identityCheck, type Workload, workloadOf } from '#kit/workload/workload.ts';

/** Settings that every service has. */
export type ServiceConfig = z.output<z.ZodObject<typeof commonSettings>>;

/**
 * What is open before a service is assembled. Only `assemble` receives all of it; areas receive the parts that they
 * need.
 */
export interface ServiceBase<C> {
  readonly config: C;
  readonly runtime: Runtime;
  /** The client id that the service's tokens carry. */
  readonly clientId: string;
  readonly workload: Workload;
  readonly bus: Bus;
  /** Closes what the service opens, last opened first. */
  readonly cleanup: Cleanup;
  /** Checks that must pass for the service to be ready; opening a part adds its check. */
  readonly checks: ReadinessCheck[];
}

/** Parts of every assembled service; a service adds its own. */
export interface ServiceParts {
  /** Verifies the tokens of calls over HTTP and gRPC. */
  readonly authenticator: Authenticator;
  /** Throughput limits of its routes; when absent, those of the profile in its settings. */
  readonly limiter?: RateLimiter;
  /** Checks whose failure only a restart repairs: `/alive` fails while one of them does. */
  readonly liveness?: readonly ReadinessCheck[];
}

/** Addresses of the listeners, `host:port`. */
export interface ServiceAddresses {
  readonly grpc: string;
  readonly https: string;
  readonly [listener: string]: string;
}

/** Declaration of a service; `createService` opens it. */
export interface ServiceDeclaration<C extends ServiceConfig, P extends ServiceParts> {
  readonly service: ServiceName;
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
  /** Adds its gRPC services. */
  readonly rpc: (server: RpcServer, parts: P) => void;
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
 * Builds the `create` of a service. It opens, in this order: identity, bus, the declared parts, gRPC, HTTPS, further
 * listeners, and last the operations listener with `/ready`. When it throws, everything opened is closed, as `stop`
 * does.
 */
export function createService<C extends ServiceConfig, P extends ServiceParts>(
  declaration: ServiceDeclaration<C, P>,
): Create<C> {
  return async (config, runtime) => {
    const cleanup = new Cleanup();
    try {
      const clientId = declaration.member?.(config) ?? clientIdOf(declaration.service);
      const base = await openBase(clientId, { config, runtime, cleanup });
      const parts = await declaration.assemble(base);
      return await serve(declaration, base, parts);
    } catch (error) {
      await cleanup.run(runtime.log);
      throw error;
    }
  };
}

async function openBase<C extends ServiceConfig>(
  clientId: string,
  opening: Pick<ServiceBase<C>, 'config' | 'runtime' | 'cleanup'>,
): Promise<ServiceBase<C>> {
  const { config, runtime, cleanup } = opening;
  const { log, clock } = runtime;
  const workload = await connectWorkload({ ...workloadOf(config), log, clock });
  cleanup.add('workload', () => workload.stop());
  const bus = await connectBus({ ...busOf(config), name: clientId, log });
  cleanup.add('bus', () => bus.close());
  return { ...opening, clientId, workload, bus, checks: [identityCheck(workload, runtime)] };
}

/** Opens the schema of a service that stores, brings it up to date, and adds the readiness check `database`. */
export async function openStore<DB>(
  base: ServiceBase<z.output<z.ZodObject<typeof databaseSettings>>>,
  store: { readonly schema: string; readonly migrations: readonly Migration[] },
): Promise<Database<DB>> {
  const { config, runtime, cleanup, checks } = base;
  const database = await openDatabase<DB>({
    url: config.DATABASE_URL,
    maxConnections: config.CHANCERY_DATABASE_CONNECTIONS,
    log: runtime.log,
    telemetry: runtime.telemetry,
    ...store,
  });
  cleanup.add('database', () => database.close());
  checks.push({ name: 'database', check: () => database.ping() });
  return database;
}

/** Opens the session at the tenant service, starts its revocations, and adds the readiness check `revocations`. */
export async function openSession(base: ServiceBase<TenantSessionOptions['config']>): Promise<TenantSession> {
  const { cleanup, checks } = base;
  const session = tenantSession(base);
  cleanup.add('tenant session', () => session.stop());
  await session.revocations.start();
  checks.push({ name: 'revocations', check: () => session.revocations.assertFresh() });
  return session;
}

async function serve<C extends ServiceConfig, P extends ServiceParts>(
  declaration: ServiceDeclaration<C, P>,
  base: ServiceBase<C>,
  parts: P,
): Promise<Component> {
  const { config, runtime, cleanup, checks } = base;
  const grpc = await listenRpc(declaration, base, parts);
  const https = await listenRoutes(declaration, base, { parts, grpc });
  const further = (await declaration.listen?.(base, parts)) ?? {};
  const addresses = { ...further, grpc, https };
  await declaration.listening?.(base, parts, addresses);
  const ops = await createOpsServer({
    runtime,
    host: config.CHANCERY_LISTEN_HOST,
    port: config.CHANCERY_OPS_PORT,
    checks,
    ...(parts.liveness === undefined ? {} : { liveness: parts.liveness }),
  });
  cleanup.add('operations', () => ops.stop());
  return {
    name: declaration.member?.(config) ?? declaration.service,
    addresses: { ...addresses, ops: ops.address },
    stop: async () => {
      await declaration.stopping?.(parts);
      await cleanup.run(runtime.log);
    },
  };
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
  declaration.rpc(server, parts);
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
