import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { judgeHandshake, parseMessage, RecordSplitter } from './protocol.ts';

const texts = fc.array(fc.string({ unit: 'grapheme' }).filter((text) => !text.includes('\u001e')));

describe('records', () => {
  it('are the same however the bytes are cut', () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(40)), (records, cuts) => {
        const bytes = Buffer.from(records.map((text) => `${text}\u001e`).join(''));
        const splitter = new RecordSplitter(1_000_000);
        const got: string[] = [];
        let at = 0;
        for (const cut of [...cuts, bytes.length]) {
          got.push(...splitter.push(bytes.subarray(at, at + cut)));
          at += cut;
        }
        expect(got).toEqual(records);
      }),
    );
  });

  it('take the memory of their bytes, however many pieces these come in', () => {
    const splitter = new RecordSplitter(1_000_000);
    const piece = Buffer.from('x');
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 1_000_000; n += 1) for (const _record of splitter.push(piece)) expect.unreachable();
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(64_000_000);
    expect([...splitter.push(Buffer.from('\u001e'))]).toEqual(['x'.repeat(1_000_000)]);
    expect([...splitter.push(Buffer.from('y\u001e'))]).toEqual(['y']);
  });

  it('have a limit, also before their end has arrived', () => {
    const splitter = new RecordSplitter(10);
    expect([...splitter.push(Buffer.from('0123456789\u001e0123'))]).toEqual(['0123456789']);
    expect(() => [...splitter.push(Buffer.from('4567890'))]).toThrow(/exceeds 10 bytes/);
  });

  it('are UTF-8', () => {
    expect(() => [...new RecordSplitter(10).push(Buffer.from([0xff, 0x1e]))]).toThrow(/UTF-8/);
  });
});

const invocations = fc
  .record(
    {
      type: fc.constantFrom(1, 2, 3, 4, 5, 6, 7),
      target: fc.anything(),
      arguments: fc.anything(),
      invocationId: fc.anything(),
    },
    { requiredKeys: ['type'] },
  )
  .map((message) =>
    JSON.stringify(message, (_key, value) => (typeof value === 'bigint' ? Number(value) : value)),
  );

describe('messages', () => {
  it('are parsed by type', () => {
    const invocation = { type: 1, target: 'Enter', arguments: ['b'], invocationId: '1' };
    const parsed = { kind: 'invocation', target: 'Enter', arguments: ['b'], invocationId: '1' };
    expect(parseMessage(JSON.stringify(invocation))).toEqual(parsed);
    expect(parseMessage(JSON.stringify({ ...invocation, type: 4 }))).toEqual({ ...parsed, kind: 'stream' });
    expect(() => parseMessage(JSON.stringify({ ...invocation, type: 4, invocationId: null }))).toThrow(
      'An invocation is malformed.',
    );
    expect(parseMessage('{"type":5,"invocationId":"1"}')).toEqual({
      kind: 'cancellation',
      invocationId: '1',
    });
    expect(() => parseMessage('{"type":5}')).toThrow('A cancellation is malformed.');
    expect(parseMessage(JSON.stringify({ ...invocation, invocationId: undefined }))).toEqual({
      ...parsed,
      invocationId: undefined,
    });
    expect(parseMessage('{"type":6}')).toEqual({ kind: 'ping' });
    expect(parseMessage('{"type":7,"error":"x"}')).toEqual({ kind: 'close' });
    expect(parseMessage('{"type":99}')).toEqual({ kind: 'other' });
  });

  it('are refused, and never anything else, when they are something else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string(), invocations), (text) => {
        try {
          expect(parseMessage(text)).toHaveProperty('kind');
        } catch (error) {
          expect(isAppError(error, 'invalid')).toBe(true);
        }
        expect(judgeHandshake(text)).toEqual(expect.any(String));
      }),
    );
  });

  it('open with the protocol json in version 1', () => {
    expect(judgeHandshake('{"protocol":"json","version":1}')).toBeUndefined();
    for (const text of ['', '{}', '[]', '{"protocol":"json"}', '{"protocol":"json","version":9}'])
      expect(judgeHandshake(text)).toEqual(expect.any(String));
    expect(judgeHandshake('{"protocol":"messagepack","version":1}')).toMatch(/only the protocol json/i);
  });
});
