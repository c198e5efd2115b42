import { AppError } from '#core/errors/errors.ts';
import type { Timing } from '#kit/clock/timing.ts';
import { isRecord } from './resource.ts';

const types = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const;

/** One event of a watch. */
export interface WatchEvent {
  readonly type: (typeof types)[number];
  /** The object; for BOOKMARK only kind and version; for ERROR a `Status`. */
  readonly object: unknown;
}

/** The stream is unusable from here on; the watch must be resumed. */
export class BrokenStream extends AppError {
  readonly flaw: 'truncated' | 'malformed' | 'silent';

  constructor(flaw: 'truncated' | 'malformed' | 'silent', message: string, cause?: unknown) {
    super('unavailable', `WATCH_${flaw.toUpperCase()}`, message, { cause });
    this.name = 'BrokenStream';
    this.flaw = flaw;
  }
}

/** etcd stores at most 1.5 MiB per object; JSON is somewhat longer. */
const maxLine = 16 * 1024 * 1024;

/**
 * Decodes the chunks of a watch into events.
 * @throws BrokenStream when a line is not an event or the last line is incomplete
 */
export async function* decodeEvents(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<WatchEvent> {
  const decoder = new TextDecoder();
  let unfinished = '';
  for await (const piece of pieces) {
    const lines = (unfinished + decoder.decode(piece, { stream: true })).split('\n');
    unfinished = lines.pop() ?? '';
    for (const line of lines) {
      if (line.trim() !== '') yield parseLine(line);
    }
    if (unfinished.length > maxLine) throw new BrokenStream('malformed', 'a line of the watch is too long');
  }
  if (unfinished.trim() !== '')
    throw new BrokenStream('truncated', 'the watch ended in the middle of a line');
}

function parseLine(line: string): WatchEvent {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new BrokenStream('malformed', 'a line of the watch is not JSON', cause);
  }
  const type = isRecord(value) ? types.find((each) => each === value['type']) : undefined;
  if (!isRecord(value) || type === undefined) {
    throw new BrokenStream('malformed', 'a line of the watch is not an event');
  }
  return { type, object: value['object'] };
}

/** Detects a half-open connection, which gives neither data nor an error. */
interface Watchdog {
  /** Restarts the timeout. */
  reset(): void;
  stop(): void;
}

/** Calls `onSilence` once, when `reset` was not called for `ms` milliseconds. */
export function createWatchdog(timing: Timing, ms: number, onSilence: () => void): Watchdog {
  let heardAt = timing.monotonicMs();
  const look = () => {
    const leftMs = heardAt + ms - timing.monotonicMs();
    if (leftMs <= 0) onSilence();
    else cancel = timing.after(leftMs, look);
  };
  let cancel = timing.after(ms, look);
  return {
    reset: () => {
      heardAt = timing.monotonicMs();
    },
    stop: () => cancel(),
  };
}
