import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import { makeCertificate, signList, type TestCertificate } from '../lists.fixture.ts';
import { ListFault } from '../values/fault.ts';
import { prepareLibrary } from '../xml/verify.ts';
import { readList } from './read-list.ts';

let signer: TestCertificate;
let document: Buffer;

beforeAll(async () => {
  prepareLibrary();
  signer = await makeCertificate();
  document = Buffer.from(signList({ services: [{ certificates: [signer.base64] }] }, { signer }));
});

const read = (bytes: Buffer) => readList(bytes, { signerSha256: signer.sha256, nowMs: Date.UTC(2026, 5, 1) });

it('reads a list with its hash, also behind a byte order mark', async () => {
  const marked = Buffer.concat([Buffer.from('\uFEFF'), document]);
  for (const bytes of [document, marked]) {
    const documentSha256 = createHash('sha256').update(bytes).digest('hex');
    const found = await read(bytes);
    expect(found).toMatchObject({ format: 'xml', documentSha256, extracted: 1 });
    expect(found.anchors).toHaveLength(1);
  }
});

it.each([
  '',
  '{}',
  '[]',
  'a.b',
  'a.b.c.d',
  '..',
  'a.b.',
  '\uFEFF',
  'MZ\u0000',
  '<',
  '<>',
  'a'.repeat(1_000),
  'null',
])('refuses %j', async (text) => {
  await expect(read(Buffer.from(text))).rejects.toMatchObject({ name: 'ListFault', kind: 'malformed' });
});

it('refuses bytes that are not UTF-8', async () => {
  await expect(read(Buffer.concat([document, Buffer.from([0xff])]))).rejects.toThrow('not UTF-8');
  await expect(read(Buffer.from(document.toString('utf8'), 'utf16le'))).rejects.toMatchObject({
    kind: 'malformed',
  });
});

it('ends with a fault, or with the same list where the byte is no part of what is signed', async () => {
  const { documentSha256: _, ...same } = await read(document);
  const outcomes: unknown[] = [];
  for (let at = 0; at < document.length; at += 23) {
    const changed = Buffer.from(document);
    changed[at] = (changed[at] ?? 0) ^ 1;
    outcomes.push(await read(changed).catch((error: unknown) => error));
  }
  const faults = outcomes.filter((outcome) => outcome instanceof ListFault);
  expect(faults.length).toBeGreaterThan(outcomes.length * 0.9);
  for (const outcome of outcomes)
    if (!faults.includes(outcome as ListFault)) expect(outcome).toMatchObject(same);
});

it('nothing but a fault, or the same list, comes of pieces that are cut out, repeated or moved', async () => {
  const { documentSha256: _, ...same } = await read(document);
  const place = fc.nat(document.length);
  await fc.assert(
    fc.asyncProperty(place, place, place, fc.uint8Array({ maxLength: 4 }), async (from, to, at, bytes) => {
      const [start, end] = from < to ? [from, to] : [to, from];
      const piece = document.subarray(start, Math.min(end, start + 400));
      for (const changed of [
        Buffer.concat([document.subarray(0, start), bytes, document.subarray(start + piece.length)]),
        Buffer.concat([document.subarray(0, at), piece, document.subarray(at)]),
      ]) {
        const outcome = await read(changed).catch((error: unknown) => error);
        if (!(outcome instanceof ListFault)) expect(outcome).toMatchObject(same);
      }
    }),
    { numRuns: 150 },
  );
});
