import { fdatasync, openSync, write } from 'node:fs';
import { promisify } from 'node:util';

/** An append-only file whose entries are forced to disk in groups. */
export interface RawLog {
  /** Resolves when the entry, and all before it, are on disk. */
  force(entry: Uint8Array): Promise<void>;
}

const writeLog = promisify(write);
const forceDisk = promisify(fdatasync);

export function openLog(file: string): RawLog {
  const log = openSync(file, 'a');
  let logging: Promise<void> = Promise.resolve();
  let unwritten: Uint8Array[] = [];
  return {
    force(entry) {
      unwritten.push(entry);
      // Entries that arrive during a write share the next one.
      if (unwritten.length > 1) return logging;
      logging = logging.then(async () => {
        const entries = unwritten;
        unwritten = [];
        await writeLog(log, Buffer.concat(entries));
        await forceDisk(log);
      });
      return logging;
    },
  };
}
