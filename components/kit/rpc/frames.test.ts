import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ExchangeRequestSchema, ExchangeResponseSchema } from '#protos/gen/chancery/rpc/v1/multiplex_pb.js';
import { type AnswerFrame, type CallFrame, decodeAnswers, decodeCalls, FrameEncoder } from './frames.ts';

const encoder = new FrameEncoder();
const uint32 = fc.nat({ max: 0xffff_ffff });
const text = fc.oneof(fc.string(), fc.string({ unit: 'binary', minLength: 0, maxLength: 300 }));
const bytes = fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array));
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const call: fc.Arbitrary<CallFrame> = fc.record({
  number: uint32,
  method: text,
  request: bytes,
  timeoutMs: uint32,
  authorization: maybe(text),
  subjectToken: maybe(text.filter((value) => value !== '')),
  traceparent: maybe(text.filter((value) => value !== '')),
});
const answer: fc.Arbitrary<AnswerFrame> = fc.record({
  number: uint32,
  response: bytes,
  isPartial: fc.boolean(),
  status: maybe(
    fc.record({
      code: fc.nat({ max: 16 }),
      details: text,
      detail: maybe(bytes.filter(({ length }) => length > 0)),
    }),
  ),
});
const calls = fc.record({ calls: fc.array(call, { maxLength: 5 }), cancelled: fc.array(uint32) });
const answers = fc.record({ answers: fc.array(answer, { maxLength: 5 }), isDraining: fc.boolean() });

/** A message of multiplex.proto with the members of a frame. */
function wireCall({ subjectToken = '', traceparent = '', authorization, ...call }: CallFrame) {
  return { ...call, subjectToken, traceparent, ...(authorization !== undefined && { authorization }) };
}

function wireAnswer({ number, response, isPartial, status }: AnswerFrame) {
  const wire = status && {
    code: status.code,
    message: status.details,
    detail: status.detail ?? Buffer.alloc(0),
  };
  return { number, response, partial: isPartial, ...(wire && { status: wire }) };
}

describe('frames of calls and answers', () => {
  it('are the messages of multiplex.proto, in both directions', () => {
    fc.assert(
      fc.property(calls, (batch) => {
        const wire = create(ExchangeRequestSchema, {
          calls: batch.calls.map(wireCall),
          cancelled: batch.cancelled,
        });
        expect(fromBinary(ExchangeRequestSchema, new Uint8Array(encoder.calls(batch)))).toEqual(
          fromBinary(ExchangeRequestSchema, toBinary(ExchangeRequestSchema, wire)),
        );
        expect(decodeCalls(Buffer.from(toBinary(ExchangeRequestSchema, wire)))).toEqual(batch);
        expect(decodeCalls(encoder.calls(batch))).toEqual(batch);
      }),
    );
    fc.assert(
      fc.property(answers, (batch) => {
        const wire = create(ExchangeResponseSchema, {
          answers: batch.answers.map(wireAnswer),
          draining: batch.isDraining,
        });
        expect(fromBinary(ExchangeResponseSchema, new Uint8Array(encoder.answers(batch)))).toEqual(
          fromBinary(ExchangeResponseSchema, toBinary(ExchangeResponseSchema, wire)),
        );
        expect(decodeAnswers(Buffer.from(toBinary(ExchangeResponseSchema, wire)))).toEqual(batch);
        expect(decodeAnswers(encoder.answers(batch))).toEqual(batch);
      }),
    );
  });

  it('ignore fields of a later release', () => {
    const frame = { number: 7, method: '/a/B', request: Buffer.from('r'), timeoutMs: 5 };
    const known = encoder.calls({
      calls: [{ ...frame, authorization: undefined, subjectToken: undefined, traceparent: undefined }],
      cancelled: [3],
    });
    const later = Buffer.from([0x7a, 2, 1, 2, 0x78, 5, 0x7d, 0, 0, 0, 0]);
    expect(decodeCalls(Buffer.concat([later, known, later]))).toMatchObject({
      calls: [frame],
      cancelled: [3],
    });
    const unpacked = Buffer.from([0x10, 1, 0x10, 2]);
    expect(decodeCalls(unpacked).cancelled).toEqual([1, 2]);
  });

  it('any bytes decode as with the generated code, or are refused', () => {
    const attempt = <T>(decode: () => T): T | undefined => {
      try {
        return decode();
      } catch {
        return undefined;
      }
    };
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (noise) => {
        const expected = attempt(() => fromBinary(ExchangeRequestSchema, noise));
        const found = attempt(() => decodeCalls(Buffer.from(noise)));
        if (expected === undefined || found === undefined) return;
        expect(found.calls.map(({ number }) => number)).toEqual(expected.calls.map(({ number }) => number));
        expect(found.cancelled).toEqual(expected.cancelled);
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ['empty calls', [0x0a, 0]],
    ['cancellations one by one', [0x10, 1]],
    ['unknown fields', [0xf8, 1, 1]],
  ])('a message that repeats %s is refused, and quickly', (_what, element) => {
    const size = 1024 * 1024;
    const message = Buffer.alloc(size - (size % element.length), Buffer.from(element));
    const startedAt = performance.now();
    expect(() => decodeCalls(message)).toThrow('too many fields');
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });

  it('packed cancellations are bounded, and lengths beyond the message are refused', () => {
    const packed = Buffer.concat([Buffer.from([0x12, 0x80, 0x80, 0x08]), Buffer.alloc(131_072, 1)]);
    expect(() => decodeCalls(packed)).toThrow('too many fields');
    for (const bad of [
      [0x0a, 5, 0x08],
      [0x0a, 4, 0x1a, 9, 1, 1],
      [0x0a, 2, 0x1a, 4, 1, 1, 1, 1],
      [0x0f],
      [0x0a],
    ]) {
      expect(() => decodeCalls(Buffer.from(bad))).toThrow();
    }
  });

  it('do not keep a batch in memory for one of its requests', () => {
    const one = { number: 1, method: '/a/B', request: Buffer.alloc(10, 1), timeoutMs: 0 };
    const headers = { authorization: undefined, subjectToken: undefined, traceparent: undefined };
    const batch = encoder.calls({
      calls: [
        { ...one, ...headers },
        { ...one, number: 2, request: Buffer.alloc(100_000), ...headers },
      ],
      cancelled: [],
    });
    expect(decodeCalls(batch).calls[0]?.request.buffer.byteLength).toBe(10);
  });
});
