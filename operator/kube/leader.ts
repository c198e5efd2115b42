import { z } from 'zod';
import type { Logger } from '#kit/log/log.ts';
import { type Api, guarded } from './api.ts';
import { isApiError, NotLeader } from './errors.ts';
import { namespaced } from './kinds.ts';
import type { KubeMetrics } from './metrics.ts';
import { isRecord, type KubeObject, parseObject } from './resource.ts';
import { microTime, rest, type Timing } from './time.ts';

export const leases = namespaced('coordination.k8s.io', 'v1', 'Lease', 'leases');

export interface LeaderOptions {
  readonly api: Api;
  readonly timing: Timing;
  readonly metrics: KubeMetrics;
  readonly log: Logger;
  readonly namespace: string;
  readonly name: string;
  /** Of this process and no other, ever: the name of the pod and something random. */
  readonly identity: string;
  /** 14 s when absent: so long nobody else takes a lease that is not renewed. */
  readonly leaseMs?: number;
  /** 10 s when absent: so long a leader writes after its last renewal. Less than the lease by what a call may take. */
  readonly renewMs?: number;
  /** 2 s when absent: between two looks at the lease. */
  readonly retryMs?: number;
}

const specSchema = z.looseObject({
  holderIdentity: z.string().nullish(),
  leaseDurationSeconds: z.number().nullish(),
  acquireTime: z.string().nullish(),
  leaseTransitions: z.number().nullish(),
});

/** A lease as it was last seen here. */
interface Seen {
  readonly lease: KubeObject;
  readonly spec: z.output<typeof specSchema>;
  /** When it was first seen in this version. */
  readonly atMs: number;
}

type End = 'lost' | 'stopped';

/**
 * One leader among several processes, by a Lease (as in client-go), and a fence around its writes. The lease is taken
 * only when it was seen unchanged for its whole duration on our own monotonic clock: clocks of other machines mean
 * nothing. A leader counts from the moment *before* it asked for a renewal, so it stops writing well before anybody
 * else can lead, whether its process was frozen, its network cut or its event loop blocked.
 */
export class Leader {
  readonly #options: Required<LeaderOptions>;
  readonly #stopping = new AbortController();
  readonly #won = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<End>();
  readonly #endReading: () => void;
  #running: Promise<void> | undefined;
  #seen: Seen | undefined;
  /** Both clocks before the last renewal that went well; undefined without the lease. */
  #renewed: { readonly monotonicMs: number; readonly wallMs: number } | undefined;
  #turnMs: number;
  #isReleasing = false;

  constructor(options: LeaderOptions) {
    this.#options = { leaseMs: 14_000, renewMs: 10_000, retryMs: 2_000, ...options };
    this.#turnMs = options.timing.monotonicMs();
    const read = () => (this.isLeading ? 1 : 0);
    this.#endReading = options.metrics.leader.add({ name: options.name }, read);
  }

  /** Begins to compete. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when this process leads. */
  get won(): Promise<void> {
    return this.#won.promise;
  }

  /** Resolves when it does not any more, for good: a process that lost its lease ends and starts anew. */
  get ended(): Promise<End> {
    return this.#ended.promise;
  }

  /** Whether this process may write at this moment. */
  get isLeading(): boolean {
    return this.#leftMs() > 0;
  }

  /** Milliseconds since the last look at the lease: many times `retryMs` means that the process is stuck. */
  turnAgeMs(): number {
    return this.#options.timing.monotonicMs() - this.#turnMs;
  }

  /** The cluster for all who write as the leader: after the end of the lease every write throws NotLeader. */
  fence(api: Api): Api {
    return guarded(api, () => this.guard());
  }

  /**
   * Asked before a write.
   * @returns milliseconds until somebody else may lead, by which the write must have been decided
   * @throws NotLeader
   */
  guard(): number {
    const leftMs = this.#leftMs();
    if (leftMs <= 0) throw new NotLeader();
    return leftMs + this.#options.leaseMs - this.#options.renewMs;
  }

  /**
   * Writes no more and gives the lease back, so that another process need not wait; also one that it could not renew any
   * more and that nobody has taken. Writers are stopped before.
   */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the leader stops'));
    await this.#running;
    this.#endReading();
    this.#renewed = undefined;
    if (this.#running !== undefined) await this.#release();
    this.#ended.resolve('stopped');
  }

  /**
   * Until when writes pass. The wall clock counts too: the monotonic one stands still while a machine is suspended.
   * Where only the wall clock jumped, writes pass again after the next renewal.
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
    while (!signal.aborted && !(await this.#turn())) {
      const freeMs = this.#untilFree();
      // candidates spread, so that they do not all ask at the same moment
      const spread = 1 + 0.2 * this.#options.timing.random();
      await this.#pause(this.#options.retryMs * spread, freeMs > 0 ? freeMs : Infinity);
    }
    if (signal.aborted) return;
    log.info({ subject: identity }, 'Became leader');
    this.#won.resolve();
    while (!signal.aborted && this.#renewed !== undefined) {
      await this.#pause(this.#options.retryMs, this.#untilLost());
      if (signal.aborted) return;
      if (this.#untilLost() <= 0) this.#renewed = undefined;
      else await this.#turn();
    }
    if (signal.aborted) return;
    log.error({ subject: identity }, 'Lost the lease');
    this.#ended.resolve('lost');
  }

  #pause(ms: number, atMostMs: number): Promise<void> {
    const pauseMs = Math.min(ms, Math.max(0, atMostMs));
    return rest(this.#options.timing, pauseMs, this.#stopping.signal).catch(() => undefined);
  }

  /** Milliseconds until the lease of another holder runs out as seen from here. */
  #untilFree(): number {
    if (this.#seen === undefined) return Infinity;
    const { timing, leaseMs } = this.#options;
    const theirsMs = (this.#seen.spec.leaseDurationSeconds ?? 0) * 1000;
    return this.#seen.atMs + (theirsMs > 0 ? theirsMs : leaseMs) - timing.monotonicMs();
  }

  #untilLost(): number {
    const { timing, renewMs } = this.#options;
    return this.#renewed === undefined ? 0 : this.#renewed.monotonicMs + renewMs - timing.monotonicMs();
  }

  /** Takes or renews the lease if that is allowed; whether it is held. Never throws. */
  async #turn(): Promise<boolean> {
    this.#turnMs = this.#options.timing.monotonicMs();
    try {
      if (this.#renewed === undefined) await this.#look();
      return await this.#claim();
    } catch (error) {
      if (this.#stopping.signal.aborted) return false;
      this.#options.log.warn({ err: error }, 'Lease could not be written');
      // somebody wrote it, perhaps ourselves in a call whose answer was lost
      const isOutdated = isApiError(error, 'Conflict', 'AlreadyExists', 'NotFound');
      if (isOutdated && this.#renewed !== undefined) await this.#recover().catch(() => undefined);
      return this.#renewed !== undefined;
    }
  }

  async #recover(): Promise<void> {
    await this.#look();
    const holder = this.#holder();
    if (holder === '' || holder === this.#options.identity) await this.#claim();
    else this.#renewed = undefined;
  }

  #holder(): string {
    return this.#seen?.spec.holderIdentity ?? '';
  }

  async #claim(): Promise<boolean> {
    const { identity, timing } = this.#options;
    const isOurs = this.#holder() === identity;
    if (this.#holder() !== '' && !isOurs && this.#untilFree() > 0) return false;
    const before = { monotonicMs: timing.monotonicMs(), wallMs: timing.nowMs() };
    const renewTime = microTime(timing);
    const { acquireTime, leaseTransitions } = this.#seen?.spec ?? {};
    const transitions = leaseTransitions ?? 0;
    const isFirst = this.#seen === undefined;
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
      // what was written by a call that broke off was not seen
      await this.#look();
      if (this.#holder() !== this.#options.identity) return;
      await this.#write(freed);
      this.#options.log.info({ subject: this.#options.identity }, 'Gave the lease back');
    } catch (error) {
      this.#options.log.warn({ err: error }, 'Lease could not be given back');
    }
  }

  async #look(): Promise<void> {
    try {
      this.#note(await this.#options.api.call({ ...this.#request(), verb: 'get', name: this.#options.name }));
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      // who held a lease that somebody deleted may still write
      const isHeld = !['', this.#options.identity].includes(this.#holder()) && this.#untilFree() > 0;
      if (!isHeld) this.#seen = undefined;
    }
  }

  async #write(spec: Readonly<Record<string, unknown>>): Promise<void> {
    const { api, name, namespace } = this.#options;
    const seen = this.#seen?.lease;
    const request = this.#request();
    if (seen === undefined) {
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace },
        spec,
      };
      return this.#note(await api.call({ ...request, verb: 'create', body }));
    }
    const body = { ...seen, spec: { ...this.#seen?.spec, ...spec } };
    this.#note(await api.call({ ...request, verb: 'update', name, body }));
  }

  /** No retries inside of a call and no waiting for the own limit: the loop knows best when to try again. */
  #request() {
    const { namespace, renewMs } = this.#options;
    const leftMs = this.#renewed === undefined ? renewMs : Math.max(1, this.#untilLost());
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

  #note(answer: unknown): void {
    const lease = parseObject(answer);
    const { resourceVersion } = lease.metadata;
    if (this.#seen !== undefined && this.#seen.lease.metadata.resourceVersion === resourceVersion) return;
    const spec = specSchema.parse(isRecord(lease['spec']) ? lease['spec'] : {});
    this.#seen = { lease, spec, atMs: this.#options.timing.monotonicMs() };
  }
}
