import { z } from 'zod';
import type { ServiceName } from '#core/identity/services.ts';

const healthStates = ['healthy', 'degraded', 'unhealthy'] as const;
type HealthState = (typeof healthStates)[number];

/** The answer of `/api/health`: nothing that tells an anonymous caller where a service is or how it failed. */
export const healthSchema = z.object({
  status: z.enum(healthStates),
  timestamp: z.string(),
  services: z.record(z.string(), z.object({ status: z.enum(healthStates) })),
});

export type Health = z.output<typeof healthSchema>;

/** Probes one service; rejects when it is down. */
export type Probe = (service: string, signal: AbortSignal) => Promise<void>;

interface HealthOptions {
  readonly services: readonly string[];
  readonly probe: Probe;
  readonly nowMs: () => number;
  /** Time for one service to answer. */
  readonly timeoutMs?: number;
  /** How long an answer is cached. */
  readonly cacheMs?: number;
}

/** Services without which sign-in or reading a register is impossible. */
const essential: readonly ServiceName[] = ['tenant', 'register'];

/** Probes all services in parallel; one round at a time, whose answer is cached for `cacheMs`. */
export function createHealth(options: HealthOptions): () => Promise<Health> {
  const { nowMs, timeoutMs = 2000, cacheMs = 2000 } = options;
  let round: { readonly answer: Promise<Health>; endedMs: number | undefined } | undefined;
  return () => {
    const usable = round !== undefined && (round.endedMs === undefined || nowMs() - round.endedMs < cacheMs);
    if (round !== undefined && usable) return round.answer;
    const fresh = { answer: askAll(options, timeoutMs), endedMs: undefined as number | undefined };
    void fresh.answer.finally(() => {
      fresh.endedMs = nowMs();
    });
    round = fresh;
    return fresh.answer;
  };
}

async function askAll(options: HealthOptions, timeoutMs: number): Promise<Health> {
  const entries = await Promise.all(
    options.services.map(async (service) => [service, await ask(options.probe, service, timeoutMs)] as const),
  );
  const services = Object.fromEntries(entries.map(([service, status]) => [service, { status }]));
  return { status: judge(new Map(entries)), timestamp: new Date(options.nowMs()).toISOString(), services };
}

async function ask(probe: Probe, service: string, timeoutMs: number): Promise<'healthy' | 'unhealthy'> {
  const late = Promise.withResolvers<'unhealthy'>();
  const abort = new AbortController();
  const timer = setTimeout(() => {
    abort.abort();
    late.resolve('unhealthy');
  }, timeoutMs);
  try {
    const asked = probe(service, abort.signal).then(
      () => 'healthy' as const,
      () => 'unhealthy' as const,
    );
    return await Promise.race([asked, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Unhealthy when an essential service is down or absent, or all are; degraded when another one is down. */
export function judge(states: ReadonlyMap<string, HealthState>): HealthState {
  if (essential.some((service) => states.get(service) !== 'healthy')) return 'unhealthy';
  return [...states.values()].every((state) => state === 'healthy') ? 'healthy' : 'degraded';
}
