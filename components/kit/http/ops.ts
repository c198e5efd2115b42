import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { serveWithoutUpgrades } from './upgrades.ts';

/** A check that must pass for the component to serve. It throws when it fails. */
export interface ReadinessCheck {
  readonly name: string;
  /** The component serves without it: `Degraded` in `/health`, and still ready. */
  readonly degrades?: boolean;
  check(): Promise<void> | void;
}

interface OpsServerOptions {
  readonly runtime: Runtime;
  readonly host: string;
  readonly port: number;
  readonly checks: readonly ReadinessCheck[];
  /** Checks whose failure only a restart repairs; none when absent. */
  readonly liveness?: readonly ReadinessCheck[];
  /** Maximum time of one check; 2000 when absent. */
  readonly checkTimeoutMs?: number;
}

/** The plain listener for probes and scraping. */
export interface OpsServer {
  readonly port: number;
  /** Its address, `host:port`. */
  readonly address: string;
  stop(): Promise<void>;
}

type HealthStatus = 'Healthy' | 'Degraded' | 'Unhealthy';

/** Result of one check. */
interface CheckResult {
  readonly name: string;
  readonly status: HealthStatus;
  readonly durationMs: number;
  readonly error?: string;
}

/**
 * Serves `/alive` (200 while the event loop turns and every liveness check passes), `/ready` (200 or 503), `/health`
 * (the checks one by one, 200 or 503) and `/metrics` (Prometheus text). Resolves when it listens.
 */
export async function createOpsServer(options: OpsServerOptions): Promise<OpsServer> {
  const { runtime } = options;
  const server = serveWithoutUpgrades(createServer(), (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    answer(options, path, response).catch((error: unknown) => {
      runtime.log.error({ err: error, path }, 'operations request failed');
      response.destroy();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    address: `${options.host}:${port}`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(options: OpsServerOptions, path: string, response: ServerResponse): Promise<void> {
  const { runtime } = options;
  switch (path) {
    case '/alive': {
      const status = judgeChecks(await runChecks(options.liveness ?? [], options.checkTimeoutMs));
      return json(response, status === 'Unhealthy' ? 503 : 200, { status, service: runtime.service });
    }
    case '/ready':
    case '/health': {
      const checks = await runChecks(options.checks, options.checkTimeoutMs);
      const status = judgeChecks(checks);
      return json(response, status === 'Unhealthy' ? 503 : 200, { status, service: runtime.service, checks });
    }
    case '/metrics': {
      const text = await runtime.telemetry.registry.metrics();
      response.writeHead(200, { 'content-type': runtime.telemetry.registry.contentType }).end(text);
      return;
    }
    default:
      return json(response, 404, { error: 'not found' });
  }
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(body));
}

/** The worst status of the results. */
export function judgeChecks(results: readonly CheckResult[]): HealthStatus {
  const has = (status: HealthStatus) => results.some((result) => result.status === status);
  if (has('Unhealthy')) return 'Unhealthy';
  return has('Degraded') ? 'Degraded' : 'Healthy';
}

/** Runs all checks at once; each may take `timeoutMs`. */
export function runChecks(checks: readonly ReadinessCheck[], timeoutMs = 2_000): Promise<CheckResult[]> {
  return Promise.all(checks.map((check) => runCheck(check, timeoutMs)));
}

async function runCheck(check: ReadinessCheck, timeoutMs: number): Promise<CheckResult> {
  const startedAt = performance.now();
  const durationMs = () => Math.round(performance.now() - startedAt);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  try {
    await Promise.race([(async () => check.check())(), late.promise]);
    return { name: check.name, status: 'Healthy', durationMs: durationMs() };
  } catch (error) {
    const text = error instanceof Error ? error.message : 'failed';
    const status = check.degrades === true ? 'Degraded' : 'Unhealthy';
    return { name: check.name, status, durationMs: durationMs(), error: text };
  } finally {
    clearTimeout(timer);
  }
}
