import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WriteDocketRequestSchema } from '#protos/gen/chancery/register/v1/register_pb.js';
import { StreamRequestSchema } from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import { decodeMessage, Undecodable } from './decode.ts';

const mebibyte = 1024 * 1024;

/** A field of a message whose body repeats one element. */
function filled(field: number, element: readonly number[], bytes: number): Uint8Array {
  const body = Buffer.alloc(bytes - (bytes % element.length), Buffer.from(element));
  const varint = (value: number): number[] =>
    value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
  return Buffer.concat([Buffer.from([...varint((field << 3) | 2), ...varint(body.length)]), body]);
}

describe('decoding messages of peers', { timeout: 60_000 }, () => {
  test('a message decodes as it was encoded, up to the size of the largest docket', () => {
    const transaction = { record: Buffer.alloc(700), payload: Buffer.alloc(300), payloadHashForm: 'jcs' };
    const request = create(WriteDocketRequestSchema, {
      header: { registerId: 'ab', transactionIds: Array<string>(10_000).fill('cd'.repeat(32)) },
      transactions: Array(10_000).fill(transaction),
      certificate: { signatures: Array(100).fill({ validatorId: 'v', index: 1, timestamp: 't' }) },
      attestations: Array(100).fill({ docketHash: 'x', approved: true, timestamp: 't', publicKey: 'p' }),
    });
    const bytes = toBinary(WriteDocketRequestSchema, request);
    expect(decodeMessage(WriteDocketRequestSchema, bytes)).toEqual(
      fromBinary(WriteDocketRequestSchema, bytes),
    );
  });

  test.each([
    ['empty heads', 15, [0x22, 0]],
    ['empty ids', 16, [0x0a, 0]],
    ['empty transactions', 16, [0x12, 0]],
    ['empty hashes', 10, [0x1a, 0]],
    ['numbers one by one', 13, [0x38, 1]],
    ['unknown fields', 13, [0xf8, 1, 1]],
  ])('a message that repeats %s is refused, and quickly', (_what, field, element) => {
    const bytes = filled(field, element, 12 * mebibyte);
    const startedAt = performance.now();
    expect(decodeMessage(StreamRequestSchema, bytes)).toBeInstanceOf(Undecodable);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  test('packed numbers count one each', () => {
    const packed = filled(7, [1], 2 * mebibyte);
    const body = Buffer.concat([packed]);
    const message = Buffer.concat([Buffer.from([0x6a, 0x84, 0x80, 0x80, 0x01]), body]);
    expect(decodeMessage(StreamRequestSchema, message)).toBeInstanceOf(Undecodable);
  });

  test('any bytes decode or are refused, and never throw; a small message is never over the count', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const found = decodeMessage(StreamRequestSchema, bytes);
        let expected: unknown;
        try {
          expected = fromBinary(StreamRequestSchema, bytes);
        } catch {
          expected = undefined;
        }
        if (expected === undefined) expect(found).toBeInstanceOf(Undecodable);
        else if (found instanceof Undecodable) expect(found.reason).not.toBe('too many fields');
        else expect(found).toEqual(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  test('nested groups do not exhaust the stack', () => {
    const nested = Buffer.alloc(mebibyte, 0xfb);
    expect(decodeMessage(StreamRequestSchema, nested)).toBeInstanceOf(Undecodable);
  });
});
