import { z } from 'zod';
import { sleep, type Timing } from '#kit/clock/timing.ts';
import type { Logger } from '#kit/log/log.ts';
import { type Api, guarded } from './api.ts';
import { isApiError, NotLeader } from './errors.ts';
import { namespaced } from './kinds.ts';
import type { KubeMetrics } from './metrics.ts';
import { microTime } from './micro-time.ts';
import { isRecord, type KubeObject, parseObject } from './resource.ts';

export const leases = namespaced('coordination.k8s.io', 'v1', 'Lease', 'leases');

interface LeaderOptions {
  readonly api: Api;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  readonly namespace: string;
  readonly name: string;
  /** Unique for every process: the name of the pod and a random part. */
  readonly identity: string;
  /** Lease duration: how long other candidates respect a lease that is not renewed; 14 s when absent. */
  readonly leaseMs?: number;
  /** Renew deadline: how long a leader writes after its last renewal; 10 s when absent. Shorter than the lease by the time of a call. */
  readonly renewMs?: number;
  /** Interval between attempts to acquire or renew; 2 s when absent. */
  readonly retryMs?: number;
}

const specSchema = z.looseObject({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  acquireTime: z.string().nullish(),
  leaseTransitions: z.number().nullish(),
});

/** The lease as this process observed it last. */
interface ObservedLease {
  readonly lease: KubeObject;
  readonly spec: z.output<typeof specSchema>;
  /** When this version was first observed; monotonic milliseconds. */
  readonly atMs: number;
}

type End = 'lost' | 'stopped';

/**
 * Leader election by a Lease, as in client-go, with a fence around the leader's writes. A candidate takes the lease only
 * when it was unchanged for its whole duration on the candidate's own monotonic clock; clocks of other machines do not
 * matter. A leader counts its deadline from *before* it sent the renewal. So it stops writing before another process can
 * lead, also when it was frozen, disconnected or blocked.
 */
export class Leader {
  readonly #options: Required<LeaderOptions>;
  readonly #stopping = new AbortController();
  readonly #elected = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<End>();
  readonly #removeGauge: () => void;
  #running: Promise<void> | undefined;
  #observed: ObservedLease | undefined;
  /** Both clocks before the last successful renewal was sent; undefined without the lease. */
  #renewed: { readonly monotonicMs: number; readonly wallMs: number } | undefined;
  #attemptedAtMs: number;
  #isReleasing = false;

  constructor(options: LeaderOptions) {
    this.#options = { leaseMs: 14_000, renewMs: 10_000, retryMs: 2_000, ...options };
    this.#attemptedAtMs = options.timing.monotonicMs();
    const read = () => (this.isLeading ? 1 : 0);
    this.#removeGauge = options.metrics.leader.add({ name: options.name }, read);
  }

  /** Starts the election. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when this process becomes leader. */
  get elected(): Promise<void> {
    return this.#elected.promise;
  }

  /** Resolves when leadership ends. A process that lost its lease must exit. */
  get ended(): Promise<End> {
    return this.#ended.promise;
  }

  /** Whether this process may write now. */
  get isLeading(): boolean {
    return this.#leftMs() > 0;
  }

  /** Milliseconds since the last attempt to acquire or renew; many times `retryMs` means a stuck process. */
  lastAttemptAgeMs(): number {
    return this.#options.timing.monotonicMs() - this.#attemptedAtMs;
  }

  /** The cluster for the writes of the leader: without the lease every write throws NotLeader. */
  fence(api: Api): Api {
    return guarded(api, () => this.guard());
  }

  /**
   * Call it before a write.
   * @returns milliseconds until another process may lead; the write must end before
   * @throws NotLeader
   */
  guard(): number {
    const leftMs = this.#leftMs();
    if (leftMs <= 0) throw new NotLeader();
    return leftMs + this.#options.leaseMs - this.#options.renewMs;
  }

  /**
   * Releases the lease, so that another process need not wait for its expiry. A lease that could not be renewed is also
   * released while it is in this process's name. Stop all writers first.
   */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the leader election was stopped'));
    await this.#running;
    this.#removeGauge();
    this.#renewed = undefined;
    if (this.#running !== undefined) await this.#release();
    this.#ended.resolve('stopped');
  }

  /**
   * Milliseconds for which writes are allowed. The wall clock is also used, because the monotonic clock stops while a
   * machine is suspended. After a mere jump of the wall clock, writes are allowed again with the next renewal.
   */
  #leftMs(): number {
    if (this.#renewed === undefined || this.#stopping.signal.aborted) return 0;
    const { timing, renewMs } = this.#options;
    const heldMs = timing.monotonicMs() - this.#renewed.monotonicMs;
    const wallMs = timing.nowMs() - this.#renewed.wallMs;
    return renewMs - Math.max(heldMs, wallMs);
  }

  async #run(): Promise<void> {
    const { log, identity } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted && !(await this.#attempt())) {
      const freeMs = this.#msUntilExpiry();
      // jitter, so that candidates do not send at the same moment
      const spread = 1 + 0.2 * this.#options.timing.random();
      await this.#pause(this.#options.retryMs * spread, freeMs > 0 ? freeMs : Infinity);
    }
    if (signal.aborted) return;
    log.info({ subject: identity }, 'Became leader');
    this.#elected.resolve();
    while (!signal.aborted && this.#renewed !== undefined) {
      await this.#pause(this.#options.retryMs, this.#msUntilDeadline());
      if (signal.aborted) return;
      if (this.#msUntilDeadline() <= 0) this.#renewed = undefined;
      else await this.#attempt();
    }
    if (signal.aborted) return;
    log.error({ subject: identity }, 'Lost the lease');
    this.#ended.resolve('lost');
  }

  #pause(ms: number, atMostMs: number): Promise<void> {
    const pauseMs = Math.min(ms, Math.max(0, atMostMs));
    return sleep(this.#options.timing, pauseMs, this.#stopping.signal).catch(() => undefined);
  }

  /** Milliseconds until the observed lease of another holder expires. */
  #msUntilExpiry(): number {
    if (this.#observed === undefined) return Infinity;
    const { timing, leaseMs } = this.#options;
    const theirsMs = (this.#observed.spec.leaseDurationSeconds ?? 0) * 1000;
    return this.#observed.atMs + (theirsMs > 0 ? theirsMs : leaseMs) - timing.monotonicMs();
  }

  #msUntilDeadline(): number {
    const { timing, renewMs } = this.#options;
    return this.#renewed === undefined ? 0 : this.#renewed.monotonicMs + renewMs - timing.monotonicMs();
  }

  /** Acquires or renews the lease if possible; returns whether it is held. Never throws. */
  async #attempt(): Promise<boolean> {
    this.#attemptedAtMs = this.#options.timing.monotonicMs();
    try {
      if (this.#renewed === undefined) await this.#fetch();
      return await this.#acquireOrRenew();
    } catch (error) {
      if (this.#stopping.signal.aborted) return false;
      this.#options.log.warn({ err: error }, 'The lease could not be acquired or renewed');
      // the lease was written meanwhile, perhaps by this process in a call whose answer was lost
      const isOutdated = isApiError(error, 'Conflict', 'AlreadyExists', 'NotFound');
      if (isOutdated && this.#renewed !== undefined) await this.#recover().catch(() => undefined);
      return this.#renewed !== undefined;
    }
  }

  async #recover(): Promise<void> {
    await this.#fetch();
    const holder = this.#holder();
    if (holder === '' || holder === this.#options.identity) await this.#acquireOrRenew();
    else this.#renewed = undefined;
  }

  #holder(): string {
    return this.#observed?.spec.holderIdentity ?? '';
  }

  async #acquireOrRenew(): Promise<boolean> {
    const { identity, timing } = this.#options;
    const isOurs = this.#holder() === identity;
    if (this.#holder() !== '' && !isOurs && this.#msUntilExpiry() > 0) return false;
    const before = { monotonicMs: timing.monotonicMs(), wallMs: timing.nowMs() };
    const renewTime = microTime(timing);
    const { acquireTime, leaseTransitions } = this.#observed?.spec ?? {};
    const transitions = leaseTransitions ?? 0;
    const isFirst = this.#observed === undefined;
    await this.#write({
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.#options.leaseMs / 1000),
      acquireTime: isOurs ? (acquireTime ?? renewTime) : renewTime,
      renewTime,
      leaseTransitions: isOurs || isFirst ? transitions : transitions + 1,
    });
    this.#renewed = before;
    return true;
  }

  async #release(): Promise<void> {
    this.#isReleasing = true;
    const renewTime = microTime(this.#options.timing);
    const freed = { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: renewTime, renewTime };
    try {
      // a write of an interrupted call was not observed
      await this.#fetch();
      if (this.#holder() !== this.#options.identity) return;
      await this.#write(freed);
      this.#options.log.info({ subject: this.#options.identity }, 'Released the lease');
    } catch (error) {
      this.#options.log.warn({ err: error }, 'The lease could not be released; it expires');
    }
  }

  async #fetch(): Promise<void> {
    try {
      this.#observe(
        await this.#options.api.call({ ...this.#request(), verb: 'get', name: this.#options.name }),
      );
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      // the holder of a deleted lease may still write until its lease would have expired
      const isHeld = !['', this.#options.identity].includes(this.#holder()) && this.#msUntilExpiry() > 0;
      if (!isHeld) this.#observed = undefined;
    }
  }

  async #write(spec: Readonly<Record<string, unknown>>): Promise<void> {
    const { api, name, namespace } = this.#options;
    const seen = this.#observed?.lease;
    const request = this.#request();
    if (seen === undefined) {
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace },
        spec,
      };
      return this.#observe(await api.call({ ...request, verb: 'create', body }));
    }
    const body = { ...seen, spec: { ...this.#observed?.spec, ...spec } };
    this.#observe(await api.call({ ...request, verb: 'update', name, body }));
  }

  /** Without retries and without the rate limit: the election loop decides about retries. */
  #request() {
    const { namespace, renewMs } = this.#options;
    const leftMs = this.#renewed === undefined ? renewMs : Math.max(1, this.#msUntilDeadline());
    const timeoutMs = Math.min(5_000, leftMs, renewMs / 2);
    return {
      resource: leases,
      namespace,
      signal: this.#isReleasing ? undefined : this.#stopping.signal,
      timeoutMs,
      urgent: true,
      retries: 0,
    } as const;
  }

  #observe(answer: unknown): void {
    const lease = parseObject(answer);
    const { resourceVersion } = lease.metadata;
    if (this.#observed !== undefined && this.#observed.lease.metadata.resourceVersion === resourceVersion)
      return;
    const spec = specSchema.parse(isRecord(lease['spec']) ? lease['spec'] : {});
    this.#observed = { lease, spec, atMs: this.#options.timing.monotonicMs() };
  }
}
