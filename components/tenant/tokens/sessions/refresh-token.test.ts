import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatRefreshToken, parseRefreshToken } from './refresh-token.ts';

const key = Buffer.alloc(32, 7);

it('round-trips every family and generation', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.integer({ min: 0, max: 0xffff_ffff }), (familyId, generation) => {
      expect(parseRefreshToken(formatRefreshToken({ familyId, generation }, key), key)).toEqual({
        familyId,
        generation,
      });
    }),
  );
});

it('refuses any changed character, another key, and other encodings of the same bytes', () => {
  const token = formatRefreshToken({ familyId: '01890000-0000-7000-8000-00000000000a', generation: 3 }, key);
  for (let i = 0; i < token.length; i++) {
    const changed = token.slice(0, i) + (token[i] === 'A' ? 'B' : 'A') + token.slice(i + 1);
    expect(parseRefreshToken(changed, key)).toBeUndefined();
  }
  expect(parseRefreshToken(token, Buffer.alloc(32, 8))).toBeUndefined();
  expect(parseRefreshToken(`${token}=`, key)).toBeUndefined();
  expect(parseRefreshToken(` ${token}`, key)).toBeUndefined();
  for (const added of ['==', ' ', '\n', '.', '\u200b', '+']) {
    expect(parseRefreshToken(token + added, key)).toBeUndefined();
  }
  expect(parseRefreshToken('', key)).toBeUndefined();
});
