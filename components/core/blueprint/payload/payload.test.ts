import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256Hex } from '../../crypto/hash.ts';
import { canonicalBytes } from '../../encoding/jcs.ts';
import {
  findClearPayload,
  findEnvelope,
  findGroupData,
  findRecipient,
  groupAad,
  isGroupHeader,
} from './envelope.ts';
import { fileChunks, findFile } from './files.ts';

const registerId = '0123456789abcdef0123456789abcdef';

function group(kids: readonly string[]) {
  const recipients = kids.map((kid) => ({ header: { alg: 'ECDH-ES+A256KW', kid }, encrypted_key: 'AA' }));
  const jwe = { protected: 'e30', recipients, iv: 'AA', ciphertext: 'AA', tag: 'AA', aad: 'AA' };
  return { groupId: 'g', commitment: `sha256:${'0'.repeat(64)}`, jwe };
}

function envelope(change: object = {}) {
  const ids = { blueprintId: 'b', actionId: '1', instanceId: 'i' };
  const groups = [group(['w1a', 'w1b'])];
  return { v: 1, type: 'action', contentEncoding: 'jwe-groups', ...ids, groups, ...change };
}

describe('the envelope of a payload', () => {
  it('is found in canonical JSON alone, with unique names and bounded groups', () => {
    expect(findEnvelope(canonicalBytes(envelope()))?.groups).toHaveLength(1);
    for (const other of [
      envelope({ contentEncoding: 'identity' }),
      envelope({ v: 2 }),
      envelope({ groups: Array.from({ length: 17 }, () => group(['w1a'])) }),
      envelope({ groups: [group(Array.from({ length: 65 }, (_, n) => `w${n}`))] }),
      envelope({ groups: [group([])] }),
      [],
      null,
    ]) {
      expect(findEnvelope(canonicalBytes(other))).toBeUndefined();
    }
    const twice = Buffer.from(JSON.stringify(envelope()).replace('{', '{"v":1,'));
    expect(findEnvelope(twice)).toBeUndefined();
    expect(findEnvelope(Buffer.from([0xff]))).toBeUndefined();
  });

  it('names recipients by their key ids', () => {
    const found = findEnvelope(canonicalBytes(envelope()))?.groups[0];
    const kidOf = (kid: string) => found && findRecipient(found, kid)?.header.kid;
    expect([kidOf('w1b'), kidOf('w1a'), kidOf('w1'), kidOf('')]).toEqual([
      'w1b',
      'w1a',
      undefined,
      undefined,
    ]);
  });

  it('binds a group to its place', () => {
    const place = Buffer.from(groupAad(registerId, { instanceId: 'i', actionId: '1' }, 'g'), 'base64url');
    expect(place.toString()).toBe(`${registerId}|i|1|g`);
    expect(isGroupHeader({ enc: 'A256GCM', typ: 'disclosure-group+jwe' })).toBe(true);
    expect(isGroupHeader({ enc: 'A256GCM' })).toBe(false);
  });

  it('gives data that fits the commitment of its group', () => {
    const plaintext = canonicalBytes({ salt: 'AA', fields: ['/a'], data: { a: 1 } });
    const commitment = `sha256:${sha256Hex(plaintext)}`;
    expect(findGroupData({ commitment }, plaintext)).toEqual({ a: 1 });
    expect(findGroupData({ commitment: `sha256:${'0'.repeat(64)}` }, plaintext)).toBeUndefined();
    const list = canonicalBytes({ salt: 'AA', fields: [], data: [] });
    expect(findGroupData({ commitment: `sha256:${sha256Hex(list)}` }, list)).toBeUndefined();
  });
});

describe('a payload in clear', () => {
  const owner = { blueprintId: 'b', actionId: '1', instanceId: 'i' };
  const plain = { v: 1, type: 'action', contentEncoding: 'identity', ...owner, data: { a: { b: 1 } } };

  it('has data, in JSON with unique names', () => {
    expect(findClearPayload(canonicalBytes(plain))?.data).toEqual({ a: { b: 1 } });
    for (const other of [
      envelope(),
      { ...plain, v: 2 },
      { ...plain, contentEncoding: 'gzip' },
      { ...plain, data: [] },
      { ...plain, data: null },
      { v: 1, type: 'action', contentEncoding: 'identity', ...owner },
      [],
    ]) {
      expect(findClearPayload(canonicalBytes(other))).toBeUndefined();
    }
    const twice = JSON.stringify(plain).replace('{', '{"data":{},');
    expect(findClearPayload(Buffer.from(twice))).toBeUndefined();
    expect(findClearPayload(Buffer.from([0xff]))).toBeUndefined();
  });
});

function reference(change: object = {}) {
  return {
    fileName: 'plan.pdf',
    contentType: 'application/pdf',
    size: 3,
    hash: `sha256:${sha256Hex('abc')}`,
    salt: randomBytes(32).toString('base64'),
    uploadId: randomUUID(),
    chunkTransactionIds: ['0'.repeat(64)],
    fileKey: randomBytes(32).toString('base64'),
    ...change,
  };
}

describe('a file of a payload', () => {
  it('is found by name, by pointer, and in a list', () => {
    const [one, two] = [reference(), reference({ fileName: 'two.pdf' })];
    const data = { plan: one, plans: [one, two], 'a/b': { '~': two } };
    const nameOf = (field: string, index = 0) => findFile(data, field, index)?.fileName;
    expect(nameOf('plan')).toBe('plan.pdf');
    expect(nameOf('/plan')).toBe('plan.pdf');
    expect([nameOf('plans'), nameOf('plans', 1), nameOf('/plans', 1), nameOf('/plans/1')]).toEqual([
      'plan.pdf',
      'two.pdf',
      'two.pdf',
      'two.pdf',
    ]);
    expect(nameOf('/a~1b/~0')).toBe('two.pdf');
    for (const [field, index] of [
      ['plan', 1],
      ['plans', 2],
      ['other', 0],
      ['__proto__', 0],
      ['/plan/constructor', 0],
      ['/plans/01', 0],
      ['/plans/length', 0],
      ['/', 0],
    ] as const) {
      expect(nameOf(field, index)).toBeUndefined();
    }
  });

  it.each([
    ['a key of 31 bytes', { fileKey: randomBytes(31).toString('base64') }],
    ['no chunk', { chunkTransactionIds: [] }],
    ['11 chunks', { chunkTransactionIds: Array.from({ length: 11 }, () => '0'.repeat(64)) }],
    ['more than 40 MiB', { size: 40 * 1024 * 1024 + 1 }],
    ['a name of 256 characters', { fileName: 'a'.repeat(256) }],
    ['a hash of another kind', { hash: 'sha1:00' }],
    ['a chunk that is no hash', { chunkTransactionIds: ['../x'] }],
  ])('is none with %s', (_name, change) => {
    expect(findFile({ file: reference(change) }, 'file', 0)).toBeUndefined();
  });

  it('has chunks that open in their place alone', () => {
    const chunkTransactionIds = ['0'.repeat(64), '1'.repeat(64)];
    const [file, other] = [reference({ chunkTransactionIds }), reference({ chunkTransactionIds })].map(
      (one) => findFile({ one }, 'one', 0),
    );
    if (file === undefined || other === undefined) throw new Error('no reference');
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 0, max: 1 }), (bytes, index) => {
        const sealed = fileChunks.seal(file, index, { nonce: randomBytes(24), bytes });
        expect(fileChunks.open(file, index, sealed)?.equals(bytes)).toBe(true);
        expect(fileChunks.open(file, 1 - index, sealed)).toBeUndefined();
        expect(fileChunks.open(other, index, sealed)).toBeUndefined();
        expect(fileChunks.open({ ...file, uploadId: other.uploadId }, index, sealed)).toBeUndefined();
        const shorter = { ...file, chunkTransactionIds: chunkTransactionIds.slice(1) };
        expect(fileChunks.open(shorter, index, sealed)).toBeUndefined();
      }),
    );
    expect(fileChunks.open(file, 0, Buffer.alloc(23))).toBeUndefined();
    expect(fileChunks.open(file, 0, Buffer.alloc(4 * 1024 * 1024 + 41))).toBeUndefined();
  });

  it('has chunks whose id is the address of their content', () => {
    const sealed = Buffer.from('chunk');
    const place = { registerId, uploadId: 'u', index: 2 };
    const text = ['platform:file-chunk:v1', registerId, 'u', '2', `sha256:${sha256Hex(sealed)}`];
    expect(fileChunks.id(place, sealed)).toBe(sha256Hex(text.join('\u001f')));
  });
});
