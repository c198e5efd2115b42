import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sha256, sha256Hex } from '#core/crypto/hash.ts';
import { ENTRY_BYTES, encodeValue, HEADER_BYTES, parseEntry, parseValue } from './format.ts';

const bytes = (max: number) => fc.uint8Array({ maxLength: max }).map((one) => Buffer.from(one));
const transaction = fc
  .record({
    seed: fc.nat(),
    payloadHashForm: fc.constantFrom('jcs', 'compact'),
    record: bytes(64),
    payload: bytes(64),
  })
  .map(({ seed, ...one }) => ({
    ...one,
    txId: sha256Hex(String(seed)),
    leaf: Buffer.from(sha256(one.record)),
  }));
const transactions = fc.array(transaction, { maxLength: 12 });
const invalid = expect.objectContaining({ code: 'DOCKET_VALUE_INVALID' });

function thrownBy(act: () => unknown): unknown {
  try {
    act();
    return undefined;
  } catch (error) {
    return error;
  }
}

describe('the value of a docket', () => {
  it('holds its transactions exactly, in order', () => {
    fc.assert(
      fc.property(transactions, (all) => {
        expect(parseValue(encodeValue(all))).toEqual(all);
      }),
    );
  });

  it('is stable: the bytes of version 1 do not change', () => {
    const value = encodeValue([
      {
        txId: '11'.repeat(32),
        leaf: Buffer.alloc(32, 0x22),
        payloadHashForm: 'compact',
        record: Buffer.from('record'),
        payload: Buffer.from('pay'),
      },
    ]);
    const entry = `00000052${'00000006'}${'00000003'}01${'11'.repeat(32)}${'22'.repeat(32)}`;
    expect(value.toString('hex')).toBe(`0100000001${entry}${Buffer.from('recordpay').toString('hex')}`);
  });

  it('has an entry at a fixed place, which locates the body', () => {
    fc.assert(
      fc.property(transactions, (all) => {
        const value = encodeValue(all);
        for (const [index, one] of all.entries()) {
          const start = HEADER_BYTES + index * ENTRY_BYTES;
          const entry = parseEntry(value.subarray(start, start + ENTRY_BYTES));
          const { offset, recordBytes, payloadBytes } = entry;
          expect(value.subarray(offset, offset + recordBytes)).toEqual(one.record);
          expect(value.subarray(offset + recordBytes, offset + recordBytes + payloadBytes)).toEqual(
            one.payload,
          );
          expect([entry.txId, entry.leaf]).toEqual([one.txId, one.leaf]);
        }
      }),
    );
  });

  it('is refused when it is shorter or longer than it says', () => {
    fc.assert(
      fc.property(transactions, fc.nat(), (all, at) => {
        const value = encodeValue(all);
        expect(thrownBy(() => parseValue(value.subarray(0, at % value.length)))).toEqual(invalid);
        expect(thrownBy(() => parseValue(Buffer.concat([value, Buffer.alloc(1)])))).toEqual(invalid);
      }),
    );
  });

  it('is read or refused whatever its bytes are, and a reader stays within them', () => {
    fc.assert(
      fc.property(transactions, fc.nat(), fc.nat(255), (all, at, byte) => {
        const value = encodeValue(all);
        value.writeUInt8(byte, at % value.length);
        const thrown = thrownBy(() => parseValue(value));
        expect(thrown === undefined || invalid.asymmetricMatch(thrown)).toBe(true);
      }),
    );
    fc.assert(
      fc.property(bytes(400), (value) => {
        const thrown = thrownBy(() => parseValue(value));
        expect(thrown === undefined || invalid.asymmetricMatch(thrown)).toBe(true);
      }),
    );
  });

  it('cannot hold what has no place in it', () => {
    const one = {
      txId: 'ab'.repeat(32),
      leaf: Buffer.alloc(32),
      payloadHashForm: 'jcs',
      record: Buffer.alloc(1),
      payload: Buffer.alloc(0),
    };
    for (const wrong of [{ txId: 'ab' }, { leaf: Buffer.alloc(31) }, { payloadHashForm: 'other' }])
      expect(thrownBy(() => encodeValue([{ ...one, ...wrong }]))).toEqual(invalid);
  });
});
