import fc from 'fast-check';
import { expect, it } from 'vitest';
import { networkOf } from './network.ts';

it.each([
  ['203.0.113.77', '203.0.113.0/24'],
  ['::ffff:203.0.113.77', '203.0.113.0/24'],
  ['::FFFF:cb00:714d', '203.0.113.0/24'],
  ['0:0:0:0:0:ffff:203.0.113.77', '203.0.113.0/24'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
  ['2001:0DB8:0001:ffff::1', '2001:db8:1::/48'],
  ['2001:db8::1', '2001:db8::/48'],
  ['2001:db8:0:1::1', '2001:db8::/48'],
  ['fe80::1%eth0', 'fe80::/48'],
  ['::1', '::/48'],
  ['::', '::/48'],
  ['::1.2.3.4', '::/48'],
  ['64:ff9b::203.0.113.77', '64:ff9b::/48'],
  ['0:0:1:2:3:4:5:6', '0:0:1::/48'],
  ['', undefined],
  [undefined, undefined],
  ['203.0.113', undefined],
  ['203.0.113.256', undefined],
  ['203.0.113.77, 198.51.100.1', undefined],
  ['[::1]', undefined],
  ['unknown', undefined],
])('%s belongs to %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});

it('depends on all of the first 48 bits of an IPv6 address and on no other bits', () => {
  const group = fc.integer({ min: 1, max: 0xfffe }).map((value) => value.toString(16));
  fc.assert(
    fc.property(
      fc.tuple(group, group, group),
      fc.array(group, { minLength: 5, maxLength: 5 }),
      (head, tail) => {
        const network = networkOf([...head, ...tail].join(':'));
        expect(network).toBe(`${head.join(':')}::/48`);
      },
    ),
  );
});
