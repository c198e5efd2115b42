import type { ChainState } from './verify.ts';

/** The register as a docket leaves it that is not stored yet. */
export interface Ahead {
  readonly state: ChainState;
  /** Types of its transactions, by id. */
  readonly types: ReadonlyMap<string, string>;
}

/** A docket that is being written, as the one after it sees it. */
export interface Before {
  /** Resolves once it is judged; undefined when it is refused, or nobody here stores it. */
  readonly judged: Promise<Ahead | undefined>;
  /** Resolves once nothing is done for it any more: true when it was stored here. */
  readonly stored: Promise<boolean>;
}

/** One call that writes a docket. */
export interface Turn {
  /** The docket before it, when that is being written in this process. */
  readonly before: Before | undefined;
  /** It may be stored: the next one can be judged. */
  judged(ahead: Ahead): void;
  /** Must be called once, however the call ends. */
  end(isStored: boolean): void;
}

export interface Turns {
  begin(registerId: string, docketNumber: number): Turn;
}

/**
 * Which dockets are being written in this process, so that one is judged while the one before it is being stored. Only calls
 * that run are known: nothing is kept of what has ended.
 */
export function createTurns(): Turns {
  const running = new Map<string, Before>();
  const keyOf = (registerId: string, docketNumber: number) => `${registerId}/${docketNumber}`;
  return {
    begin(registerId, docketNumber) {
      const key = keyOf(registerId, docketNumber);
      const judged = Promise.withResolvers<Ahead | undefined>();
      const stored = Promise.withResolvers<boolean>();
      const own: Before = { judged: judged.promise, stored: stored.promise };
      // the same docket may come from several members: the first is the one that the next waits for
      if (!running.has(key)) running.set(key, own);
      return {
        before: running.get(keyOf(registerId, docketNumber - 1)),
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
