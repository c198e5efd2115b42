import { deflateSync, gunzipSync, inflateSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { keyPair, scene, signedJwt, testTimeMs } from '../sd-jwt/testing/issuer.ts';
import {
  bitstringOf,
  buildStatusList,
  findBit,
  findStatus,
  MIN_BITSTRING_ENTRIES,
  STATUS_BITS,
  STATUS_INVALID,
  STATUS_SUSPENDED,
  STATUS_VALID,
  statusCount,
} from './status-list.ts';
import { judgeStatusTokenForm, type StatusTokenExpectation, verifyStatusToken } from './token.ts';
import vectors from './vectors/token-status-list.json' with { type: 'json' };

const refusal = expect.objectContaining({ code: 'INVALID_STATUS_LIST' });

it.each(vectors.lists)('draft-ietf-oauth-status-list-21 $name', ({ bits: written, size, lst, entries }) => {
  const bits = STATUS_BITS.find((count) => count === written);
  if (bits === undefined) throw new Error('no bits');
  const bytes = inflateSync(Buffer.from(lst, 'base64url'));
  expect(bytes.length * (8 / bits)).toBe(size);
  const values = new Map(entries.map(([index = -1, value = -1]) => [index, value]));
  const list = { bits, bytes };
  for (let index = 0; index < size; index += 1) {
    if (findStatus(list, index) !== (values.get(index) ?? 0)) throw new Error(`entry ${index}`);
  }
  const built = buildStatusList(
    bits,
    size,
    [...values].map(([index, value]) => ({ index, value })),
  );
  expect(Buffer.compare(built.bytes, bytes)).toBe(0);
  expect(findStatus(list, size)).toBeUndefined();
});

it('bounds of indexes and values', () => {
  const list = buildStatusList(2, 4, [{ index: 3, value: 2 }]);
  expect([...list.bytes]).toEqual([0x80]);
  for (const index of [-1, 4, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53]) {
    expect(findStatus(list, index)).toBeUndefined();
    expect(() => buildStatusList(2, 4, [{ index, value: 1 }])).toThrow(refusal);
  }
  for (const value of [-1, 4, 0.5, Number.NaN]) {
    expect(() => buildStatusList(2, 4, [{ index: 0, value }])).toThrow(refusal);
  }
  for (const count of [0, 3, -4, 1.5, Number.NaN]) {
    expect(() => buildStatusList(2, count, [])).toThrow(refusal);
  }
  const twice = [1, 2].map((value) => ({ index: 1, value }));
  expect(() => buildStatusList(2, 4, twice)).toThrow(refusal);
});

it('what is built is read, whatever the bits', () => {
  const lists = fc.constantFrom(...STATUS_BITS).chain((bits) =>
    fc.record({
      bits: fc.constant(bits),
      values: fc
        .uint8Array({ minLength: 8, maxLength: 64 })
        .map((bytes) => [...bytes].map((byte) => byte % 2 ** bits)),
    }),
  );
  fc.assert(
    fc.property(lists, ({ bits, values }) => {
      const whole = values.slice(0, values.length - (values.length % 8));
      const list = buildStatusList(
        bits,
        whole.length,
        whole.map((value, index) => ({ index, value })),
      );
      expect(statusCount(list)).toBe(whole.length);
      expect(whole.map((_, index) => findStatus(list, index))).toEqual(whole);
    }),
  );
});

it('the W3C view: most significant bit first', () => {
  const list = buildStatusList(2, MIN_BITSTRING_ENTRIES, [
    { index: 0, value: STATUS_INVALID },
    { index: 9, value: STATUS_SUSPENDED },
    { index: 131_071, value: STATUS_INVALID },
  ]);
  const revoked = bitstringOf(list, STATUS_INVALID);
  expect([revoked[0], revoked[1], revoked.at(-1)]).toEqual([0x80, 0, 1]);
  const suspended = bitstringOf(list, STATUS_SUSPENDED);
  expect([suspended[0], suspended[1], suspended.at(-1)]).toEqual([0, 0x40, 0]);
  expect([findBit(revoked, 0), findBit(revoked, 1), findBit(revoked, 131_071)]).toEqual([true, false, true]);
  for (const index of [-1, 131_072, 0.5]) expect(findBit(revoked, index)).toBeUndefined();
  expect(() => bitstringOf(buildStatusList(2, 1024, []), STATUS_INVALID)).toThrow(refusal);
});

it('the empty list of Bitstring Status List v1.0', () => {
  const encoded = 'H4sIAAAAAAAAA-3BMQEAAADCoPVPbQwfoAAAAAAAAAAAAAAAAAAAAIC3AYbSVKsAQAAA';
  const empty = gunzipSync(Buffer.from(encoded, 'base64url'));
  const list = buildStatusList(1, MIN_BITSTRING_ENTRIES, []);
  expect(Buffer.compare(bitstringOf(list, STATUS_INVALID), empty)).toBe(0);
  expect(findStatus(list, 94_567)).toBe(STATUS_VALID);
});

const { issuer } = scene();
const uri = 'https://issuer.example/lists/1';
const seconds = testTimeMs / 1000;
const expected: StatusTokenExpectation = {
  uri,
  issuerKey: issuer.key,
  algorithms: ['ES256'],
  atMs: testTimeMs,
};
const lst = deflateSync(Uint8Array.of(0xb9, 0xa3)).toString('base64url');
const payload = { sub: uri, iat: seconds - 10, exp: seconds + 10, ttl: 60, status_list: { bits: 1, lst } };

function verdict(change: object, header: object = {}, signer = issuer.privateKey): string | undefined {
  const text = signedJwt(
    { alg: 'ES256', typ: 'statuslist+jwt', ...header },
    { ...payload, ...change },
    signer,
  );
  const form = judgeStatusTokenForm(text);
  const { violations } = form.result === undefined ? form : verifyStatusToken(form.result, expected);
  const [first] = violations;
  return first === undefined ? undefined : [first.code, first.field].filter(Boolean).join(' ');
}

it('a status list token', () => {
  const token = judgeStatusTokenForm(
    signedJwt({ alg: 'ES256', typ: 'statuslist+jwt' }, payload, issuer.privateKey),
  );
  if (token.result === undefined) throw new Error('not parsed');
  const { result } = verifyStatusToken(token.result, expected);
  expect(result).toMatchObject({ bits: 1, ttlSeconds: 60, expiresAt: seconds + 10 });
  expect([...inflateSync(result?.compressed ?? Buffer.of())]).toEqual([0xb9, 0xa3]);
  expect(verdict({ ttl: undefined, exp: undefined })).toBeUndefined();
});

it('a status list token that is none is refused', () => {
  expect(judgeStatusTokenForm('a.b.c').violations[0]?.code).toBe('FORMAT');
  expect(verdict({}, { typ: 'JWT' })).toBe('FORMAT typ');
  expect(verdict({}, { alg: 'none' })).toBe('SIGNATURE');
  expect(verdict({}, { alg: 'ES384' })).toBe('SIGNATURE');
  expect(verdict({}, {}, keyPair().privateKey)).toBe('SIGNATURE');
  expect(verdict({ sub: 'https://issuer.example/lists/2' })).toBe('FORMAT sub');
  expect(verdict({ iat: undefined })).toBe('FORMAT iat');
  expect(verdict({ exp: seconds - 60 })).toBe('EXPIRED exp');
  for (const ttl of [0, -1, '60', null]) expect(verdict({ ttl })).toBe('FORMAT ttl');
  for (const list of [
    undefined,
    [],
    { bits: 3, lst },
    { bits: '1', lst },
    { bits: 1 },
    { bits: 1, lst: 'a=' },
  ]) {
    expect(verdict({ status_list: list })).toBe('FORMAT status_list');
  }
});
