import type { Logger } from '#kit/log/log.ts';
import type { RecoveredRegister } from '../records/recovery.ts';

/** How far the volume of a validator was behind a register's chain when the process started. */
export interface VolumeGap {
  /** Number of dockets that the log on the volume knew. */
  readonly held: number;
  /** Number of dockets that the register service had. */
  readonly chain: number;
  readonly atMs: number;
}

interface VolumeGapsOptions {
  readonly log: Logger;
  nowMs(): number;
  /** Counts the dockets of one register that the volume lacked. */
  onGap(dockets: number): void;
}

/**
 * The registers whose chain was ahead of the volume at start. The validator was down, or an older copy of its volume was
 * restored; the log cannot tell which. Either way it resumes from the register service's state, and the signing component
 * remembers what the validator signed at heights that the log no longer knows.
 */
export class VolumeGaps {
  readonly #options: VolumeGapsOptions;
  readonly #gaps = new Map<string, VolumeGap>();

  constructor(options: VolumeGapsOptions) {
    this.#options = options;
  }

  /** Compares the log's state of a register with the chain it resumes from. */
  compare(registerId: string, recovered: RecoveredRegister | undefined, chain: number): void {
    const held = heldHeight(recovered);
    if (held >= chain) return;
    const { log, nowMs, onGap } = this.#options;
    this.#gaps.set(registerId, { held, chain, atMs: nowMs() });
    onGap(chain - held);
    log.warn(
      { registerId, held, chain, missing: chain - held, from: 'register service' },
      `The volume of this validator is behind the chain of register ${registerId}: it lacks dockets ${held} to ${chain - 1}, which are read from the register service. The validator was down, or an older copy of its volume was restored`,
    );
  }

  find(registerId: string): VolumeGap | undefined {
    return this.#gaps.get(registerId);
  }
}

function heldHeight(recovered: RecoveredRegister | undefined): number {
  if (recovered === undefined) return 0;
  const decided = [...recovered.decided.keys()].map((docketNumber) => docketNumber + 1);
  return Math.max(recovered.storedHeight, ...decided);
}
