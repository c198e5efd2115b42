import { describe, expect, it } from 'vitest';
import { decodeAnswers, decodeCalls, encodeAnswers, encodeCalls } from './frames.ts';

const mebibyte = 1024 * 1024;

describe('frames of calls and answers', () => {
  it('ignore fields of a later release', () => {
    const call = { number: 7, method: '/a/B', request: Buffer.from('r'), timeoutMs: 5 };
    const later = Buffer.from([0x7a, 2, 1, 2, 0x78, 5, 0x7d, 0, 0, 0, 0]);
    const known = encodeCalls({ calls: [call], cancelled: [3] });
    expect(decodeCalls(Buffer.concat([later, known, later]))).toMatchObject({
      calls: [call],
      cancelled: [3],
    });
  });

  it.each([
    ['empty calls', [0x0a, 0]],
    ['cancellations one by one', [0x10, 1]],
    ['unknown fields', [0xf8, 1, 1]],
  ])('a message that repeats %s is refused, and quickly', (_what, element) => {
    const message = Buffer.alloc(mebibyte - (mebibyte % element.length), Buffer.from(element));
    const startedAt = performance.now();
    expect(() => decodeCalls(message)).toThrow('too many fields');
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('are refused when they end within a field', () => {
    for (const bad of [
      [0x0a, 5, 0x08],
      [0x0a, 4, 0x1a, 9, 1, 1],
      [0x0a, 2, 0x1a, 4, 1, 1, 1, 1],
      [0x0f],
      [0x0a],
    ]) {
      expect(() => decodeCalls(Buffer.from(bad))).toThrow(RangeError);
      expect(() => decodeAnswers(Buffer.from(bad))).toThrow(RangeError);
    }
  });

  it('do not keep a batch in memory for one of its messages', () => {
    const [small, large] = [Buffer.alloc(10, 1), Buffer.alloc(100_000)];
    const { calls } = decodeCalls(encodeCalls({ calls: [{ request: small }, { request: large }] }));
    expect(calls[0]?.request.buffer.byteLength).toBe(10);
    const { answers } = decodeAnswers(encodeAnswers({ answers: [{ response: small }, { response: large }] }));
    expect(answers[0]?.response.buffer.byteLength).toBe(10);
  });
});
