import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { type FileReference, findFile } from '#core/blueprint/payload/files.ts';
import { AppError } from '#core/errors/errors.ts';
import { createDownloads, type FileChunks } from '#kit/files/downloads.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { refusal } from '../../errors.ts';
import { makeFile } from '../../testing/sealed-file.ts';

const registerId = 'a'.repeat(32);
const { telemetry } = testRuntime('service-wallet');

/** A file with its reference, and the chunks that serve it. */
function madeFile(): { file: FileReference; chunks: FileChunks; content: Buffer } {
  const content = randomBytes(100);
  const { reference, chunks } = makeFile(registerId, [content]);
  const file = findFile({ file: reference }, 'file', 0);
  if (file === undefined) throw new Error('the reference of the made file is malformed');
  const read = async (_registerId: string, chunkId: string) => {
    const found = chunks.get(chunkId);
    if (found === undefined) throw new AppError('not_found', 'CHUNK_NOT_FOUND', 'unknown');
    return found;
  };
  return { file, chunks: { read }, content };
}

const isWiped = ({ fileKey }: FileReference) => fileKey.every((byte) => byte === 0);

describe('the key of a file', () => {
  it('is wiped when the stream has closed, and not before', async () => {
    const { file, chunks, content } = madeFile();
    const stream = await createDownloads({ chunks, telemetry, refusal }).open({
      file,
      registerId,
      subject: 'ada',
    });
    expect(isWiped(file)).toBe(false);
    const closed = new Promise((resolve) => stream.once('close', resolve));
    expect((await buffer(stream)).equals(content)).toBe(true);
    await closed;
    expect(isWiped(file)).toBe(true);
  });

  it('is wiped where the installation serves no files', async () => {
    const { file } = madeFile();
    const downloads = createDownloads({ chunks: undefined, telemetry, refusal });
    await expect(downloads.open({ file, registerId, subject: 'ada' })).rejects.toMatchObject({
      code: 'FILES_UNAVAILABLE',
    });
    expect(isWiped(file)).toBe(true);
  });

  it('is wiped when too many downloads run, and the running ones keep theirs', async () => {
    const [one, two] = [madeFile(), madeFile()];
    const downloads = createDownloads({ chunks: one.chunks, telemetry, refusal, limitPerCaller: 1 });
    const stream = await downloads.open({ file: one.file, registerId, subject: 'ada' });
    await expect(downloads.open({ file: two.file, registerId, subject: 'ada' })).rejects.toMatchObject({
      code: 'DOWNLOAD_LIMIT',
    });
    expect([isWiped(one.file), isWiped(two.file)]).toEqual([false, true]);
    expect((await buffer(stream)).equals(one.content)).toBe(true);
  });

  it('is wiped when the first chunk is missing, and the download counts no longer', async () => {
    const [one, two] = [madeFile(), madeFile()];
    const downloads = createDownloads({ chunks: two.chunks, telemetry, refusal, limit: 1 });
    await expect(downloads.open({ file: one.file, registerId, subject: 'ada' })).rejects.toMatchObject({
      code: 'FILE_NOT_FOUND',
    });
    expect(isWiped(one.file)).toBe(true);
    const stream = await downloads.open({ file: two.file, registerId, subject: 'ada' });
    stream.destroy();
  });
});
