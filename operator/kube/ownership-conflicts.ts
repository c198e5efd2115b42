import type { Timing } from '#kit/clock/timing.ts';
import { type Bucket, createBucket } from './rate-limit.ts';
import { isRecord, type KubeObject } from './resource.ts';

/** Six overwrites at once, then six per minute. */
const overwriteRate = { perSecond: 0.1, burst: 6 };
/** A conflict ends when nothing was changed for this time. */
const quietPeriodMs = 30_000;

interface OwnershipConflict {
  readonly bucket: Bucket;
  changedAtMs: number;
  /** Known once the number of changes has exceeded the limit of overwrites. */
  competingManagers: readonly string[] | undefined;
}

/** Objects whose fields another manager keeps changing, by a key of the caller. */
export class OwnershipConflicts {
  readonly #timing: Timing;
  readonly #conflicts = new Map<string, OwnershipConflict>();

  constructor(timing: Timing) {
    this.#timing = timing;
  }

  /** Records a foreign change of our fields; returns whether they may be overwritten now. */
  mayOverwrite(name: string): boolean {
    const bucket = this.#conflicts.get(name)?.bucket ?? createBucket(overwriteRate, this.#timing);
    const competingManagers = this.competingManagers(name);
    this.#conflicts.set(name, { bucket, changedAtMs: this.#timing.monotonicMs(), competingManagers });
    return bucket.take();
  }

  /** Records the competing managers of a conflict that has exceeded the limit. */
  open(name: string, competingManagers: readonly string[]): void {
    const conflict = this.#conflicts.get(name);
    if (conflict !== undefined) conflict.competingManagers = competingManagers;
  }

  /** The competing managers of an open conflict; undefined when there is none. */
  competingManagers(name: string): readonly string[] | undefined {
    const conflict = this.#conflicts.get(name);
    if (conflict === undefined || this.#timing.monotonicMs() - conflict.changedAtMs >= quietPeriodMs)
      return undefined;
    return conflict.competingManagers;
  }

  forget(name: string): void {
    this.#conflicts.delete(name);
  }
}

/** Field managers other than `own` that own a field of `desired`. */
export function findCompetingManagers(live: KubeObject, desired: KubeObject, own: string): readonly string[] {
  const others = (live.metadata.managedFields ?? []).filter(
    ({ manager, fieldsV1 }) => manager !== own && ownsAny(fieldsV1, desired),
  );
  return [...new Set(others.map(({ manager }) => manager ?? 'unknown'))];
}

/** Lists are owned per item; any item counts. */
function ownsAny(fields: unknown, desired: unknown): boolean {
  if (!isRecord(fields)) return false;
  return Object.entries(fields).some(([key, below]) => {
    if (key === '.') return false;
    if (!key.startsWith('f:')) return true;
    const member = isRecord(desired) ? desired[key.slice(2)] : undefined;
    if (member === undefined) return false;
    return !isRecord(below) || Object.keys(below).length === 0 || ownsAny(below, member);
  });
}
