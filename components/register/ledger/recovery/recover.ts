import { AppError, genericCode, isAppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import { refusal } from '../../errors.ts';
import type { DocketBundle } from '../dockets/docket.ts';
import type { WriteDocket } from '../writing/write.ts';
import type { DocketSource } from './source.ts';
import type { Track } from './track.ts';

export interface RecoverDeps {
  /** Verifies all of a docket and stores it. */
  readonly writeDocket: WriteDocket;
  readonly clock: Clock;
  readonly log: Logger;
  /** The result of a promise, or undefined when it takes longer. */
  within<T>(promise: Promise<T>, ms: number): Promise<T | undefined>;
}

/** Limits after which a register is stalled: failed sources, and silence of one source. */
const mostFailures = 3;
const silentMs = 60_000;
const retryMs = 30_000;

/**
 * Recovers the missing dockets of a register from the sources, one source after the other; each docket is verified like
 * any other write. A source that sends a wrong docket, or no more dockets, is skipped for the next one. Never throws.
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
        'a source failed; the next one is tried',
      );
      // This status is public, and messages contain host names.
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
      if (next === undefined) throw refusal('SOURCE_SILENT');
      if (next.done === true) throw refusal('SOURCE_EXHAUSTED');
      track.received(deps.clock.nowMs());
      await store(track, next.value, number, deps);
    }
  } finally {
    ended.abort();
    // Ending the iteration is not awaited: a silent source does not end it either.
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
  // A docket that is stored already would be a replay without end.
  if (registerId !== track.registerId || docketNumber !== number)
    throw refusal('DOCKET_OUT_OF_ORDER', {
      kind: 'invalid',
      message: `docket ${docketNumber} is out of order`,
    });
  const result = await writeDocket(docket);
  switch (result.outcome) {
    case 'stored':
    case 'replayed':
      track.stored(result.height, clock.nowMs());
      return;
    case 'out_of_order':
      throw refusal('DOCKET_OUT_OF_ORDER', { message: `docket ${docketNumber} does not follow` });
    case 'divergent':
      throw refusal('DOCKET_DIVERGENCE', { message: `another docket ${docketNumber} is stored` });
    case 'invalid':
      throw new AppError(
        'unprocessable',
        result.violations[0]?.code ?? 'INVALID_DOCKET',
        `docket ${docketNumber} is invalid`,
      );
  }
}
