import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { type FileReference, fileChunks } from '#core/blueprint/payload/files.ts';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import type { Telemetry } from '#kit/telemetry/telemetry.ts';

/** What a download is refused for. */
type DownloadFault =
  | 'FILES_UNAVAILABLE'
  | 'DOWNLOAD_LIMIT'
  | 'DOWNLOAD_STALLED'
  | 'FILE_PURGED'
  | 'FILE_NOT_FOUND'
  | 'FILE_CORRUPT';

/** Makes the error of a fault, with the text of the component that serves the download. */
type Refuse = (
  fault: DownloadFault,
  options?: { readonly cause?: unknown; readonly retryAfterSeconds?: number },
) => AppError;

/** Encrypted chunks of files of the blueprint service. */
export interface FileChunks {
  /** @throws AppError not_found for an unknown chunk, gone for a purged one */
  read(registerId: string, chunkId: string): Promise<Uint8Array>;
}

interface DownloadsOptions {
  /** Absent where the installation has no blueprint service. */
  readonly chunks: FileChunks | undefined;
  readonly telemetry: Pick<Telemetry, 'counter'>;
  readonly refusal: Refuse;
  /** Maximum concurrent downloads of this process, and of one caller; each holds two chunks of 4 MiB. */
  readonly limit?: number;
  readonly limitPerCaller?: number;
  /** A download is aborted when its reader takes nothing for this long. */
  readonly stallMs?: number;
}

/** A file of a register, and the caller that reads it. */
interface Download {
  readonly file: FileReference;
  readonly registerId: string;
  readonly subject: string;
}

export interface Downloads {
  /**
   * Opens the content of a file once its first chunk is verified. Each further chunk is verified before it is sent, and
   * the file's hash before the last one; a failure aborts the stream. The key of the file is wiped when the stream closes,
   * and when the download is refused.
   * @throws AppError unavailable FILES_UNAVAILABLE, rate_limited DOWNLOAD_LIMIT, gone FILE_PURGED, not_found
   * FILE_NOT_FOUND, unprocessable FILE_CORRUPT
   */
  open(download: Download): Promise<Readable>;
}

/** Serves files, and bounds how many at a time. */
export function createDownloads(options: DownloadsOptions): Downloads {
  const { chunks, telemetry, refusal, limit = 8, limitPerCaller = 2, stallMs = 60_000 } = options;
  const failures = telemetry.counter('file_download_failures_total', 'Downloads of files that failed', [
    'code',
  ]);
  const running: string[] = [];

  const begin = (subject: string): void => {
    const own = running.filter((each) => each === subject).length;
    if (running.length >= limit || own >= limitPerCaller)
      throw refusal('DOWNLOAD_LIMIT', { retryAfterSeconds: 10 });
    running.push(subject);
  };
  const end = (subject: string): void => void running.splice(running.indexOf(subject), 1);
  const failed = (error: unknown): void => failures.inc({ code: isAppError(error) ? error.code : 'UNKNOWN' });

  const start = async (from: FileChunks, { file, registerId, subject }: Download): Promise<Readable> => {
    begin(subject);
    const pieces = verifiedChunks(
      { file, registerId },
      (chunkId) => readChunk(from, { registerId, chunkId }, refusal),
      refusal,
    );
    try {
      const first = await pieces.next();
      const content = untilStalled(first, pieces, stallMs, () => stream.destroy(refusal('DOWNLOAD_STALLED')));
      const stream = Readable.from(content, { objectMode: false, highWaterMark: 1 });
      stream.once('error', failed);
      stream.once('close', () => {
        end(subject);
        file.fileKey.fill(0);
      });
      return stream;
    } catch (error) {
      failed(error);
      end(subject);
      throw error;
    }
  };

  return {
    async open(download) {
      try {
        if (chunks === undefined) throw refusal('FILES_UNAVAILABLE');
        return await start(chunks, download);
      } catch (error) {
        download.file.fileKey.fill(0);
        throw error;
      }
    },
  };
}

/** The chunks of a file in plaintext: each verified before it is given, the last one with the whole file. */
async function* verifiedChunks(
  { file, registerId }: Pick<Download, 'file' | 'registerId'>,
  read: (chunkId: string) => Promise<Uint8Array>,
  refusal: Refuse,
): AsyncGenerator<Uint8Array, undefined, undefined> {
  const hash = createHash('sha256');
  const { uploadId, chunkTransactionIds } = file;
  let size = 0;
  for (const [index, chunkId] of chunkTransactionIds.entries()) {
    const sealed = await read(chunkId);
    const isOwn = fileChunks.id({ registerId, uploadId, index }, sealed) === chunkId;
    const bytes = isOwn ? fileChunks.open(file, index, sealed) : undefined;
    if (bytes === undefined) throw refusal('FILE_CORRUPT');
    size += bytes.length;
    hash.update(bytes);
    const isLast = index === chunkTransactionIds.length - 1;
    const fits = isLast
      ? size === file.size && `sha256:${hash.digest('hex')}` === file.hash
      : size <= file.size;
    if (!fits) throw refusal('FILE_CORRUPT');
    yield bytes;
  }
  return undefined;
}

async function readChunk(
  chunks: FileChunks,
  { registerId, chunkId }: { readonly registerId: string; readonly chunkId: string },
  refusal: Refuse,
): Promise<Uint8Array> {
  try {
    return await chunks.read(registerId, chunkId);
  } catch (cause) {
    throw refusalOf(cause, refusal);
  }
}

function refusalOf(cause: unknown, refusal: Refuse): AppError {
  if (isAppError(cause, 'gone')) return refusal('FILE_PURGED', { cause });
  if (isAppError(cause, 'not_found')) return refusal('FILE_NOT_FOUND', { cause });
  return refusal('FILES_UNAVAILABLE', { cause, retryAfterSeconds: 1 });
}

/** Gives the first chunk and those after it; calls `giveUp` when a chunk is not consumed in time. */
async function* untilStalled(
  first: IteratorResult<Uint8Array, undefined>,
  rest: AsyncIterator<Uint8Array, undefined>,
  stallMs: number,
  giveUp: () => void,
): AsyncGenerator<Uint8Array> {
  for (let next = first; next.done !== true; next = await rest.next()) {
    const timer = setTimeout(giveUp, stallMs);
    timer.unref();
    try {
      if (next.value.length > 0) yield next.value;
    } finally {
      clearTimeout(timer);
    }
  }
}
