import { type Bucket, createBucket } from './rate-limit.ts';
import { isRecord, type KubeObject } from './resource.ts';
import type { Timing } from './time.ts';

/** So many answers at first, and six a minute from then on. */
const answers = { perSecond: 0.1, burst: 6 };
/** A fight is over when nobody has changed anything for so long. */
const PEACE_MS = 30_000;

interface Fight {
  readonly bucket: Bucket;
  changedAtMs: number;
  /** Who is on the other side, once there were more changes than answers. */
  rivals: readonly string[] | undefined;
}

/** Objects of which somebody else keeps changing what we set, by a name of the caller. */
export class Fights {
  readonly #timing: Timing;
  readonly #fights = new Map<string, Fight>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** Somebody changed what we had set. Gives whether it may be put back now. */
  mayAnswer(name: string): boolean {
    const bucket = this.#fights.get(name)?.bucket ?? createBucket(answers, this.#timing);
    const rivals = this.rivals(name);
    this.#fights.set(name, { bucket, changedAtMs: this.#timing.monotonicMs(), rivals });
    return bucket.take();
  }

  /** There are more changes than answers: from now on it is said who makes them, until there is peace. */
  open(name: string, rivals: readonly string[]): void {
    const fight = this.#fights.get(name);
    if (fight !== undefined) fight.rivals = rivals;
  }

  /** The other side of a fight that goes on, also after an answer; undefined when there is none. */
  rivals(name: string): readonly string[] | undefined {
    const fight = this.#fights.get(name);
    if (fight === undefined || this.#timing.monotonicMs() - fight.changedAtMs >= PEACE_MS) return undefined;
    return fight.rivals;
  }

  forget(name: string): void {
    this.#fights.delete(name);
  }
}

/** Managers, besides our own, that own a field which we set. */
export function rivalsOf(live: KubeObject, wanted: KubeObject, own: string): readonly string[] {
  const others = (live.metadata.managedFields ?? []).filter(
    ({ manager, fieldsV1 }) => manager !== own && ownsAny(fieldsV1, wanted),
  );
  return [...new Set(others.map(({ manager }) => manager ?? 'unknown'))];
}

/** Of a list its items are owned, by key or value: any of them counts. */
function ownsAny(fields: unknown, wanted: unknown): boolean {
  if (!isRecord(fields)) return false;
  return Object.entries(fields).some(([key, below]) => {
    if (key === '.') return false;
    if (!key.startsWith('f:')) return true;
    const member = isRecord(wanted) ? wanted[key.slice(2)] : undefined;
    if (member === undefined) return false;
    return !isRecord(below) || Object.keys(below).length === 0 || ownsAny(below, member);
  });
}
