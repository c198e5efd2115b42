import type { Logger } from '#kit/log/log.ts';
import type { Recovered } from '../log/recovery.ts';

/** The volume of a validator was behind the chain of a register when the process started. */
export interface VolumeGap {
  /** Dockets that the log on the volume knew of. */
  readonly held: number;
  /** Dockets that the register service had. */
  readonly chain: number;
  readonly atMs: number;
}

export interface VolumeGapsOptions {
  readonly log: Logger;
  nowMs(): number;
  /** So many dockets of one register are not on the volume. */
  counted(dockets: number): void;
}

/**
 * What was found at the start: volumes that know less of a register than is sealed of it. The validator was away, or an
 * older copy of its volume was put back; the log cannot tell which. Either way it goes on from where the register service
 * is, and what it said before on heights that it does not remember, the signing component remembers.
 */
export class VolumeGaps {
  readonly #options: VolumeGapsOptions;
  readonly #gaps = new Map<string, VolumeGap>();

  constructor(options: VolumeGapsOptions) {
    this.#options = options;
  }

  /** Compares what a log said of a register with the chain that was taken up. */
  compare(registerId: string, recovered: Recovered | undefined, chain: number): void {
    const held = heldHeight(recovered);
    if (held >= chain) return;
    const { log, nowMs, counted } = this.#options;
    this.#gaps.set(registerId, { held, chain, atMs: nowMs() });
    counted(chain - held);
    log.warn(
      { registerId, held, chain, missing: chain - held, from: 'register service' },
      `The volume of this validator is behind the chain: it lacks dockets ${held} to ${chain - 1}, which are taken from the register service. It was away, or an older copy of its volume was put back`,
    );
  }

  find(registerId: string): VolumeGap | undefined {
    return this.#gaps.get(registerId);
  }
}

function heldHeight(recovered: Recovered | undefined): number {
  if (recovered === undefined) return 0;
  const decided = [...recovered.decided.keys()].map((docketNumber) => docketNumber + 1);
  return Math.max(recovered.storedHeight, ...decided);
}
