export const syncStatuses = ['synced', 'recovering', 'stalled'] as const;
export type SyncStatus = (typeof syncStatuses)[number];

/** A recovering register is stale after this long without progress. */
const staleMs = 10_000;

/** The entry of a register in `/health/sync` (specification document 2, section 2). */
export interface SyncEntry {
  readonly registerId: string;
  readonly status: SyncStatus;
  /** Number of the last stored docket; also 0 for a register without dockets. */
  readonly currentDocket: number;
  readonly targetDocket: number;
  readonly hasGenesis: boolean;
  readonly progressPercent: number;
  readonly docketsProcessed: number;
  readonly lastError: string | null;
  readonly isStale: boolean;
}

/**
 * Recovery state of one register: synced, recovering, then synced again or stalled. Progress is a docket that was
 * stored or received, and never decreases until the register is synced.
 */
export class Track {
  readonly registerId: string;
  #status: SyncStatus = 'synced';
  #start: number;
  #current: number;
  #target: number;
  #percent = 100;
  #processed = 0;
  #lastError: string | null = null;
  #progressAtMs = 0;
  #retryAtMs = 0;
  readonly #failures = new Map<string, number>();

  /** @param height number of stored dockets */
  constructor(registerId: string, height: number) {
    this.registerId = registerId;
    this.#start = height;
    this.#current = height;
    this.#target = height;
  }

  get status(): SyncStatus {
    return this.#status;
  }

  get current(): number {
    return this.#current;
  }

  get isBehind(): boolean {
    return this.#current < this.#target;
  }

  /** Records the stored height and the height that the sources report. */
  observe(height: number, target: number): void {
    this.#current = height;
    this.#target = Math.max(height, target);
    if (!this.isBehind) this.#sync();
  }

  /** Whether the sources should be queried: a stalled register pauses before the next attempt. */
  isDue(nowMs: number): boolean {
    return this.isBehind && (this.#status !== 'stalled' || nowMs >= this.#retryAtMs);
  }

  begin(nowMs: number): void {
    if (this.#status === 'synced') {
      this.#start = this.#current;
      this.#processed = 0;
      this.#percent = 0;
    }
    this.#status = 'recovering';
    this.#progressAtMs = nowMs;
  }

  /** A source sent something. */
  received(nowMs: number): void {
    this.#progressAtMs = nowMs;
  }

  /** Dockets up to `height` are stored. */
  stored(height: number, nowMs: number): void {
    this.#processed += Math.max(0, height - this.#current);
    this.#current = Math.max(this.#current, height);
    this.#progressAtMs = nowMs;
    const whole = Math.max(1, this.#target - this.#start);
    const percent = Math.floor((100 * (this.#current - this.#start)) / whole);
    this.#percent = Math.max(this.#percent, Math.min(100, percent));
    if (!this.isBehind) this.#sync();
  }

  /** A source failed. */
  failed(source: string, reason: string): void {
    this.#failures.set(source, this.failuresOf(source) + 1);
    this.#lastError = `${source}: ${reason}`;
  }

  /** Number of failures of a source since the register was synced. */
  failuresOf(source: string): number {
    return this.#failures.get(source) ?? 0;
  }

  /** No source has the missing dockets; retried later. */
  stall(retryAtMs: number): void {
    this.#status = 'stalled';
    this.#retryAtMs = retryAtMs;
  }

  entry(nowMs: number): SyncEntry {
    const isWaiting = this.#status === 'recovering';
    return {
      registerId: this.registerId,
      status: this.#status,
      currentDocket: Math.max(0, this.#current - 1),
      targetDocket: Math.max(0, this.#target - 1),
      hasGenesis: this.#current > 0,
      progressPercent: this.#percent,
      docketsProcessed: this.#processed,
      lastError: this.#lastError,
      isStale: isWaiting && nowMs - this.#progressAtMs > staleMs,
    };
  }

  #sync(): void {
    this.#status = 'synced';
    this.#percent = 100;
    this.#lastError = null;
    this.#failures.clear();
  }
}

/** Synced when all are, stalled when any is, recovering otherwise (specification document 2, section 3). */
export function aggregate(statuses: Iterable<SyncStatus>): SyncStatus {
  let worst: SyncStatus = 'synced';
  for (const status of statuses) {
    if (status === 'stalled') return status;
    if (status === 'recovering') worst = status;
  }
  return worst;
}
