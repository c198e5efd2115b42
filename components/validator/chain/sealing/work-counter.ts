import type { Clock } from '#kit/clock/clock.ts';

/** The counters of one validator in one register. */
export const workNames = [
  'received',
  'validated',
  'rejected',
  'validatingMicros',
  'confirmed',
  'expired',
  'built',
  'buildingMicros',
  'judged',
  'judgingMicros',
  'decided',
  'stored',
] as const;
type WorkName = (typeof workNames)[number];
export type WorkCounts = Record<WorkName, number>;

/** Counters of one validator in one register: since its start, and within the last 24 hours. */
export interface WorkReport {
  readonly total: Readonly<WorkCounts>;
  readonly lastDay: Readonly<WorkCounts>;
  /** Refused submissions by the first code of their refusal. */
  readonly errorsByCode: Readonly<Record<string, number>>;
}

const hourMs = 3_600_000;
const hoursKept = 24;
/** Bound of distinct codes; further codes are counted in the total only. */
const maxCodes = 128;
const times = { built: 'buildingMicros', judged: 'judgingMicros' } as const;

/** Counters at zero. */
export function zeroWork(): WorkCounts {
  const counts: Partial<WorkCounts> = {};
  for (const name of workNames) counts[name] = 0;
  return counts as WorkCounts;
}

/** Sums counters name by name. */
export function addWork(all: readonly Readonly<WorkCounts>[]): WorkCounts {
  const sum = zeroWork();
  for (const counts of all) for (const name of workNames) sum[name] += counts[name];
  return sum;
}

/** Counts the work of one validator in one register. The last 24 hours are the current hour and the 23 before it. */
export class WorkCounter {
  readonly startedAtMs: number;
  readonly #clock: Clock;
  readonly #total = zeroWork();
  /** By hour since the epoch, oldest first. */
  readonly #hours = new Map<number, WorkCounts>();
  readonly #codes = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.startedAtMs = clock.nowMs();
  }

  get total(): Readonly<WorkCounts> {
    return this.#total;
  }

  get report(): WorkReport {
    this.#forget(this.#hour);
    return {
      total: { ...this.#total },
      lastDay: addWork([...this.#hours.values()]),
      errorsByCode: Object.fromEntries(this.#codes),
    };
  }

  count(name: WorkName, by = 1): void {
    this.#total[name] += by;
    const hour = this.#hour;
    const counts = this.#hours.get(hour);
    if (counts === undefined) this.#begin(hour)[name] += by;
    else counts[name] += by;
  }

  /** Counts a call and its duration, unless it returns undefined. */
  timed<T>(name: keyof typeof times, callback: () => T): T {
    const since = this.#nowMicros;
    const result = callback();
    if (result === undefined) return result;
    this.count(name);
    this.count(times[name], this.#nowMicros - since);
    return result;
  }

  /** Counts a received submission and returns its time in microseconds, which later counters refer to. */
  received(): number {
    this.count('received');
    return this.#nowMicros;
  }

  /** Counts an accepted submission. */
  validated(sinceMicros: number): void {
    this.count('validated');
    this.count('validatingMicros', this.#nowMicros - sinceMicros);
  }

  /** Counts a refused submission and the code of its refusal. */
  rejected(sinceMicros: number, code: string): void {
    this.count('rejected');
    this.#refused(code);
    this.count('validatingMicros', this.#nowMicros - sinceMicros);
  }

  get #nowMicros(): number {
    return Number(this.#clock.nowMicros());
  }

  get #hour(): number {
    return Math.floor(this.#clock.nowMs() / hourMs);
  }

  #begin(hour: number): WorkCounts {
    this.#forget(hour);
    const counts = zeroWork();
    this.#hours.set(hour, counts);
    return counts;
  }

  #forget(now: number): void {
    for (const hour of this.#hours.keys()) if (hour <= now - hoursKept) this.#hours.delete(hour);
  }

  #refused(code: string): void {
    if (!this.#codes.has(code) && this.#codes.size >= maxCodes) return;
    this.#codes.set(code, (this.#codes.get(code) ?? 0) + 1);
  }
}
