import { Readable } from 'node:stream';
import { AppError } from '#core/errors/errors.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { type ExportPlan, exportText } from './text.ts';

interface ExportsOptions {
  /** Maximum concurrent exports of this process, and of one caller. */
  readonly limit: number;
  readonly limitPerCaller: number;
  /** An export is aborted when its reader takes nothing for this long. */
  readonly stallMs: number;
}

export interface Exports {
  /**
   * Opens the export of a register; it ends when its reader disconnects.
   * @throws AppError EXPORTS_BUSY or EXPORT_LIMIT
   */
  open(plan: ExportPlan, subject: string): Readable;
  /** Number of running exports. */
  readonly running: number;
}

const exportDefaults: ExportsOptions = { limit: 8, limitPerCaller: 2, stallMs: 60_000 };

/** Ends a stream when a chunk is not consumed in time. */
async function* untilStalled(
  pieces: AsyncIterable<string>,
  stallMs: number,
  giveUp: () => void,
): AsyncGenerator<string> {
  for await (const piece of pieces) {
    const timer = setTimeout(giveUp, stallMs);
    timer.unref();
    try {
      yield piece;
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Bounds concurrent exports: each one puts a heavy load on the database. */
export function createExports(
  db: Reader<RegisterSchema>,
  { limit, limitPerCaller, stallMs }: ExportsOptions = exportDefaults,
): Exports {
  const running: string[] = [];
  return {
    get running() {
      return running.length;
    },
    open(plan, subject) {
      if (running.filter((each) => each === subject).length >= limitPerCaller) {
        throw refusal('EXPORT_LIMIT', { retryAfterSeconds: 10 });
      }
      if (running.length >= limit) throw refusal('EXPORTS_BUSY', { retryAfterSeconds: 10 });
      running.push(subject);
      const giveUp = () => {
        stream.destroy(
          new AppError('timeout', 'TIMEOUT', 'The reader took nothing for too long; the export was aborted.'),
        );
      };
      const pieces = untilStalled(exportText(db, plan), stallMs, giveUp);
      const stream = Readable.from(pieces, { objectMode: false });
      stream.once('close', () => running.splice(running.indexOf(subject), 1));
      return stream;
    },
  };
}
