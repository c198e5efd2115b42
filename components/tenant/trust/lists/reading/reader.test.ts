import { execFileSync } from 'node:child_process';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { makeCertificate, signList, type TestCertificate } from '../lists.fixture.ts';
import { createListReader, type ListReader } from './reader.ts';

const { log } = testRuntime('tenant');
const mebibyte = 1_048_576;
let reader: ListReader;
let signer: TestCertificate;
let anchors: readonly TestCertificate[];

beforeAll(async () => {
  signer = await makeCertificate({ name: 'Signer', algorithm: 'RSA-2048' });
  anchors = await Promise.all(
    Array.from({ length: 4 }, (_, at) => makeCertificate({ name: `Anchor ${at}` })),
  );
});
afterEach(async () => {
  await reader.close();
  vi.restoreAllMocks();
});

const pin = () => ({ signerSha256: signer.sha256, nowMs: Date.UTC(2026, 5, 1) });

/** A list of at least so many bytes. */
function listOf(bytes: number): Buffer {
  const one = anchors.map(({ base64 }) => base64);
  const services = Array.from({ length: Math.ceil(bytes / (anchors[0]?.base64.length ?? 1) / 5) }, () => ({
    certificates: one,
  }));
  return Buffer.from(signList({ services }, { signer }));
}

const threadOf = (code: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`import { parentPort, workerData } from 'node:worker_threads'; ${code}`)}`,
  );

describe('the reader of trust lists', () => {
  it('reads a list, and refuses others by code', { timeout: 30_000 }, async () => {
    reader = createListReader({ log });
    const list = await reader.read(listOf(1), pin());
    expect(list).toMatchObject({ format: 'xml', signer: { thumbprint: signer.sha256 }, extracted: 4 });
    expect(list.anchors.map(({ thumbprint }) => thumbprint)).toEqual(anchors.map(({ sha256 }) => sha256));
    for (const text of ['', '{}']) {
      await expect(reader.read(Buffer.from(text), pin())).rejects.toMatchObject({
        code: 'TRUSTLIST_MALFORMED',
      });
    }
    const stranger = { ...pin(), signerSha256: anchors[0]?.sha256 };
    await expect(reader.read(listOf(1), stranger)).rejects.toMatchObject({
      code: 'TRUSTLIST_SIGNATURE_INVALID',
      message: expect.stringContaining('pinned signer'),
    });
  });

  it('does nothing outside a thread, where the build of an image loads its module', {
    timeout: 30_000,
  }, () => {
    const load = `await import(${JSON.stringify(new URL('./thread.ts', import.meta.url).href)})`;
    expect(execFileSync(process.execPath, ['--input-type=module', '-e', load], { encoding: 'utf8' })).toBe(
      '',
    );
  });

  it('spends less than 50 ms of the main thread on a list of 2.4 MB', { timeout: 60_000 }, async () => {
    reader = createListReader({ log });
    const document = listOf(2.4 * mebibyte);
    expect(document.length).toBeGreaterThan(2.4 * mebibyte);
    const before = process.threadCpuUsage();
    const list = await reader.read(document, pin());
    const { user, system } = process.threadCpuUsage(before);
    expect(list.extracted).toBeGreaterThan(1_000);
    expect((user + system) / 1_000).toBeLessThan(50);
  });

  it('ends a thread that takes too long, and reads the next list', async () => {
    const threadUrl = threadOf(`
      while (workerData.document[0] === 104) {}
      parentPort.postMessage({ list: { sequenceNumber: 1 } });`);
    reader = createListReader({ log, longestMs: 1_500, threadUrl });
    const [slow, next] = await Promise.allSettled([
      reader.read(Buffer.from('hang'), pin()),
      reader.read(Buffer.from('next'), pin()),
    ]);
    expect(slow).toMatchObject({ reason: { code: 'TRUSTLIST_MALFORMED' } });
    expect(next).toMatchObject({ value: { sequenceNumber: 1 } });
  });

  it('ends a thread that takes too much memory', { timeout: 60_000 }, async () => {
    const logged = vi.spyOn(log, 'error');
    reader = createListReader({ log, memoryMb: 32 });
    const document = Buffer.from(`<a>${'<b/>'.repeat(mebibyte)}</a>`);
    await expect(reader.read(document, pin())).rejects.toMatchObject({
      code: 'TRUSTLIST_MALFORMED',
      message: expect.stringContaining('too much time or memory'),
    });
    expect(logged).not.toHaveBeenCalled();
    expect((await createListReader({ log }).read(listOf(1), pin())).anchors).toHaveLength(4);
  });

  it('reports a thread that fails, or ends without an answer, once', async () => {
    const logged = vi.spyOn(log, 'error');
    for (const code of ['throw new Error("broken");', 'process.exit(0);']) {
      reader = createListReader({ log, threadUrl: threadOf(code) });
      await expect(reader.read(Buffer.from('x'), pin())).rejects.toMatchObject({ kind: 'internal' });
    }
    expect(logged).toHaveBeenCalledTimes(2);
  });

  it('refuses more lists than may wait, and those that wait when it is closed', async () => {
    reader = createListReader({ log, threadUrl: threadOf('for (;;) {}') });
    const results = Array.from({ length: 6 }, () => reader.read(Buffer.from('x'), pin()));
    const settled = Promise.allSettled(results);
    await expect(Promise.race(results)).rejects.toMatchObject({
      code: 'TRUSTLIST_IMPORT_BUSY',
      kind: 'unavailable',
    });
    await reader.close();
    for (const { status } of await settled) expect(status).toBe('rejected');
    await expect(reader.read(Buffer.from('x'), pin())).rejects.toMatchObject({
      code: 'TRUSTLIST_IMPORT_BUSY',
    });
  });
});
