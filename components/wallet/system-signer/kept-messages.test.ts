import { expect, test } from 'vitest';
import { decodeEarlier, encodeEarlier, type KeptMessage } from './kept-messages.ts';

function message(step: number): KeptMessage {
  return { step, digest: Buffer.alloc(32, step), signature: Buffer.alloc(64, 0x80 + step) };
}

const [proposal, prevote, precommit] = [message(1), message(2), message(3)];

test('the earlier messages of a batch are read back, and a batch of one has none', () => {
  const encoded = encodeEarlier([proposal, prevote, precommit]);
  expect(encoded).toHaveLength(32 + 2 * 97);
  expect(decodeEarlier(encoded, precommit.digest)).toEqual([proposal, prevote]);
  expect(encodeEarlier([precommit])).toBeNull();
  expect(decodeEarlier(null, precommit.digest)).toEqual([]);
});

test('the messages of another batch are ignored, as in a row that an earlier version moved on', () => {
  const encoded = encodeEarlier([proposal, prevote, precommit]);
  expect(decodeEarlier(encoded, prevote.digest)).toEqual([]);
  expect(decodeEarlier(Buffer.alloc(0), precommit.digest)).toEqual([]);
});
