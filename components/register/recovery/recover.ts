import { AppError, genericCode, isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import type { WriteDocket } from '../dockets/write.ts';
import type { DocketSource } from './source.ts';
import type { Track } from './track.ts';

export interface RecoverDeps {
  /** Verifies all of a docket and stores it (notes/ledger.md 4.6). */
  readonly writeDocket: WriteDocket;
  readonly clock: Clock;
  readonly log: Logger;
  /** What a promise comes to, or undefined when it takes longer. */
  within<T>(promise: Promise<T>, ms: number): Promise<T | undefined>;
}

/** After so many sources that failed, and after so long without anything of one, a register is stalled (L-129). */
const mostFailures = 3;
const silentMs = 60_000;
const retryMs = 30_000;

/**
 * Brings the dockets that a register lacks from the sources, one source after the other; each docket is verified like any
 * that is written. A source that gives a wrong docket, or nothing more, is left for the next one. Never throws.
 */
export async function recover(
  track: Track,
  sources: readonly DocketSource[],
  deps: RecoverDeps,
): Promise<void> {
  const { registerId } = track;
  for (const source of sources.slice(0, mostFailures)) {
    try {
      await pull(track, source, deps);
    } catch (error) {
      const isForeseen = isAppError(error);
      const code = isForeseen ? error.code : genericCode('internal');
      deps.log[isForeseen ? 'debug' : 'warn'](
        { err: error, registerId, peer: source.name },
        'a source failed',
      );
      // Everybody may read this, and messages name hosts.
      track.failed(source.name, `${code} at docket ${track.current}`);
    }
    if (!track.isBehind) return;
  }
  track.stall(deps.clock.nowMs() + retryMs);
}

async function pull(track: Track, source: DocketSource, deps: RecoverDeps): Promise<void> {
  const { registerId, current: from } = track;
  const ended = new AbortController();
  const dockets = source.dockets(registerId, from, ended.signal)[Symbol.asyncIterator]();
  try {
    for (let number = from; track.isBehind; number += 1) {
      const next = await deps.within(dockets.next(), silentMs);
      if (next === undefined) throw new AppError('timeout', 'SOURCE_SILENT', 'no docket came in time');
      if (next.done === true) throw new AppError('unavailable', 'SOURCE_EXHAUSTED', 'it has no more dockets');
      track.received(deps.clock.nowMs());
      await store(track, next.value, number, deps);
    }
  } finally {
    ended.abort();
    // A source that does not answer does not end either: it is not waited for.
    void dockets.return?.().catch(() => undefined);
  }
}

async function store(
  track: Track,
  docket: DocketBundle,
  number: number,
  { writeDocket, clock }: RecoverDeps,
): Promise<void> {
  const { docketNumber, registerId } = docket.header;
  // One that is there already would be a replay, again and again.
  if (registerId !== track.registerId || docketNumber !== number)
    throw new AppError('invalid', 'DOCKET_OUT_OF_ORDER', `it gave docket ${docketNumber} out of its order`);
  const result = await writeDocket(docket);
  switch (result.outcome) {
    case 'stored':
    case 'replayed':
      track.stored(result.height, clock.nowMs());
      return;
    case 'out_of_order':
      throw new AppError('conflict', 'DOCKET_OUT_OF_ORDER', `docket ${docketNumber} does not follow`);
    case 'divergent':
      throw new AppError('conflict', 'DOCKET_DIVERGENCE', `another docket ${docketNumber} is stored`);
    case 'invalid':
      throw new AppError(
        'unprocessable',
        result.violations[0]?.code ?? 'INVALID_DOCKET',
        `docket ${docketNumber} is wrong`,
      );
  }
}
