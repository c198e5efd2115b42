import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { assertKeyBinding } from './key-binding.ts';

const nowMs = Date.UTC(2026, 10, 25, 18);
const now = nowMs / 1000;
const header = { typ: 'kb+jwt', alg: 'ES256' };
const payload = { nonce: 'n-1', aud: 'https://verifier.example', sd_hash: 'abc', iat: now };

const segment = (part: unknown) => encoded(typeof part === 'string' ? part : JSON.stringify(part));
const encoded = (text: string) => Buffer.from(text).toString('base64url');
const inputOf = (head: unknown, body: unknown) => `${segment(head)}.${segment(body)}`;

function codeOf(signingInput: string): string | undefined {
  try {
    assertKeyBinding(signingInput, { algorithm: 'ES256', nowMs });
    return undefined;
  } catch (error) {
    if (isAppError(error)) return error.code;
    throw error;
  }
}

describe('the signing input of a key-binding JWT', () => {
  it('is accepted with further members', () => {
    expect(codeOf(inputOf(header, payload))).toBeUndefined();
    expect(codeOf(inputOf({ ...header, kid: 'k' }, { ...payload, transaction_data_hashes: ['a'] }))).toBe(
      undefined,
    );
  });

  it.each([
    ['crit', { ...header, crit: ['x'] }],
    ['an empty crit', { ...header, crit: [] }],
    ['b64', { ...header, b64: false }],
    ['another type', { ...header, typ: 'JWT' }],
    ['a type in capitals', { ...header, typ: 'KB+JWT' }],
    ['no type', { alg: 'ES256' }],
    ['no algorithm', { typ: 'kb+jwt' }],
    ['an algorithm that is no text', { ...header, alg: ['ES256'] }],
    ['a list', []],
    ['two types', '{"typ":"JWT","typ":"kb+jwt","alg":"ES256"}'],
    ['two types, one escaped', '{"typ":"JWT","\\u0074yp":"kb+jwt","alg":"ES256"}'],
    ['text after the object', `${JSON.stringify(header)} x`],
    ['a byte order mark', `\ufeff${JSON.stringify(header)}`],
    ['deep nesting', `{"typ":"kb+jwt","alg":"ES256","x":${'['.repeat(5_000)}`],
  ])('is refused with %s in the header', (_name, head) => {
    expect(codeOf(inputOf(head, payload))).toBe('KB_HEADER_INVALID');
  });

  it.each(['EdDSA', 'none', 'es256', 'HS256', ''])('is refused with the algorithm %j', (alg) => {
    expect(codeOf(inputOf({ ...header, alg }, payload))).toBe('KB_ALG_MISMATCH');
  });

  it.each([
    ['no nonce', { ...payload, nonce: undefined }],
    ['an empty nonce', { ...payload, nonce: '' }],
    ['a nonce that is a number', { ...payload, nonce: 1 }],
    ['a list of audiences', { ...payload, aud: ['a'] }],
    ['no audience', { ...payload, aud: undefined }],
    ['no sd_hash', { ...payload, sd_hash: undefined }],
    ['no iat', { ...payload, iat: undefined }],
    ['an iat that is a text', { ...payload, iat: String(now) }],
    ['an iat with a fraction', { ...payload, iat: now + 0.5 }],
    ['an iat of 301 s ago', { ...payload, iat: now - 301 }],
    ['an iat in 301 s', { ...payload, iat: now + 301 }],
    ['two nonces', JSON.stringify(payload).replace('{', '{"nonce":"other",')],
    ['two equal names deep inside', JSON.stringify(payload).replace('{', '{"x":{"a":1,"a":2},')],
    ['a text', '"text"'],
    ['nothing', ' '],
  ])('is refused with %s in the payload', (_name, body) => {
    expect(codeOf(inputOf(header, body))).toBe('KB_PAYLOAD_INVALID');
  });

  it('is accepted with an iat of 300 s in either direction', () => {
    for (const iat of [now - 300, now + 300]) {
      expect(codeOf(inputOf(header, { ...payload, iat }))).toBeUndefined();
    }
  });

  it('has exactly two segments in base64url', () => {
    const [head, body] = [segment(header), segment(payload)];
    expect(codeOf(`${head}.${body}.`)).toBe('KB_HEADER_INVALID');
    expect(codeOf(`${head}.${body}.AA`)).toBe('KB_HEADER_INVALID');
    expect(codeOf(`.${body}`)).toBe('KB_HEADER_INVALID');
    expect(codeOf(head)).toBe('KB_PAYLOAD_INVALID');
    expect(codeOf(`${head}.`)).toBe('KB_PAYLOAD_INVALID');
    expect(codeOf(`${head}=.${body}`)).toBe('KB_HEADER_INVALID');
    expect(codeOf(`${head}. ${body}`)).toBe('KB_PAYLOAD_INVALID');
    expect(codeOf(`${encoded('{"typ":"kb+jwt","alg":"ES256"} ').replace(/.$/, 'B')}.${body}`)).toBe(
      'KB_HEADER_INVALID',
    );
  });

  it('never ends in another error than a refusal', () => {
    const part = fc.oneof(fc.string(), fc.json(), fc.base64String());
    fc.assert(
      fc.property(part, part, (head, body) => {
        expect(codeOf(`${head}.${body}`)).toMatch(/^KB_/);
        expect(codeOf(inputOf(head, body))).toMatch(/^KB_/);
      }),
    );
  });
});
