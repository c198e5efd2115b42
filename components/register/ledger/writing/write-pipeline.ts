import type { Predecessors } from './steps.ts';
import type { ChainState } from './verify.ts';

/** The state of a register after a docket that is not stored yet. */
export interface SpeculativeState {
  readonly state: ChainState;
  /** Its transactions, by id. */
  readonly transactions: Predecessors;
}

/** A docket that is being written, as the write of its successor sees it. */
export interface PreviousWrite {
  /** Resolves once it is judged; undefined when it is refused or not stored by this process. */
  readonly judged: Promise<SpeculativeState | undefined>;
  /** Resolves when its write has ended: true when this process stored it. */
  readonly stored: Promise<boolean>;
}

/** One call that writes a docket. */
export interface PipelineSlot {
  /** The previous docket, when this process is writing it. */
  readonly previous: PreviousWrite | undefined;
  /** The docket may be stored, so that its successor can be judged. */
  judged(speculative: SpeculativeState): void;
  /** Must be called exactly once, however the call ends. */
  end(isStored: boolean): void;
}

interface WritePipeline {
  begin(registerId: string, docketNumber: number): PipelineSlot;
}

/**
 * Tracks the dockets that this process is writing, so that one can be judged while its predecessor is being stored.
 * Only running calls are tracked.
 */
export function createWritePipeline(): WritePipeline {
  const running = new Map<string, PreviousWrite>();
  const keyOf = (registerId: string, docketNumber: number) => `${registerId}/${docketNumber}`;
  return {
    begin(registerId, docketNumber) {
      const key = keyOf(registerId, docketNumber);
      const judged = Promise.withResolvers<SpeculativeState | undefined>();
      const stored = Promise.withResolvers<boolean>();
      const own: PreviousWrite = { judged: judged.promise, stored: stored.promise };
      // several members may send the same docket: its successor waits for the first write
      if (!running.has(key)) running.set(key, own);
      return {
        previous: running.get(keyOf(registerId, docketNumber - 1)),
        judged: judged.resolve,
        end(isStored) {
          if (running.get(key) === own) running.delete(key);
          judged.resolve(undefined);
          stored.resolve(isStored);
        },
      };
    },
  };
}
