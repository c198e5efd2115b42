import { AppError } from '#core/errors/errors.ts';
import { isRecord } from './resource.ts';
import type { Timing } from './time.ts';

const types = ['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR'] as const;

/** One line of a watch. */
export interface WatchEvent {
  readonly type: (typeof types)[number];
  /** The object; of a bookmark only kind and version; of an error a `Status`. */
  readonly object: unknown;
}

/** A stream that cannot be trusted from here on: what was lost in it must be asked for again. */
export class BrokenStream extends AppError {
  readonly flaw: 'truncated' | 'malformed' | 'silent';

  constructor(flaw: 'truncated' | 'malformed' | 'silent', message: string, cause?: unknown) {
    super('unavailable', `WATCH_${flaw.toUpperCase()}`, message, { cause });
    this.name = 'BrokenStream';
    this.flaw = flaw;
  }
}

/** etcd keeps at most 1.5 MiB an object; JSON is a little longer. */
const MAX_LINE = 16 * 1024 * 1024;

/**
 * Events of the pieces of a watch, as they arrive.
 * @throws BrokenStream when a line is no event, or the last one has no end
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
    if (unfinished.length > MAX_LINE) throw new BrokenStream('malformed', 'a line of the watch has no end');
  }
  if (unfinished.trim() !== '')
    throw new BrokenStream('truncated', 'the watch ended in the middle of a line');
}

function parseLine(line: string): WatchEvent {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new BrokenStream('malformed', 'a line of the watch is no JSON', cause);
  }
  const type = isRecord(value) ? types.find((each) => each === value['type']) : undefined;
  if (!isRecord(value) || type === undefined) {
    throw new BrokenStream('malformed', 'a line of the watch is no event');
  }
  return { type, object: value['object'] };
}

/** Notices silence: a connection whose other end vanished gives neither data nor an error. */
export interface Watchdog {
  /** Something was heard. */
  pat(): void;
  stop(): void;
}

/** Calls `onSilence` once, when nothing was heard for `ms` milliseconds. */
export function createWatchdog(timing: Timing, ms: number, onSilence: () => void): Watchdog {
  let heardAt = timing.monotonicMs();
  const look = () => {
    const leftMs = heardAt + ms - timing.monotonicMs();
    if (leftMs <= 0) onSilence();
    else cancel = timing.after(leftMs, look);
  };
  let cancel = timing.after(ms, look);
  return {
    pat: () => {
      heardAt = timing.monotonicMs();
    },
    stop: () => cancel(),
  };
}
