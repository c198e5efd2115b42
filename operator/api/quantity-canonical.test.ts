import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalQuantity, compareQuantities } from './quantity.ts';

test.each([
  ['0.5', '500m'],
  ['1024Mi', '1Gi'],
  ['1.5Gi', '1536Mi'],
  ['1000m', '1'],
  ['1000', '1k'],
  ['0', '0'],
  ['0Mi', '0'],
  ['100m', '100m'],
  ['1536', '1536'],
  ['0.5Ki', '512'],
])('the canonical text of %s is %s', (given, written) => {
  expect(canonicalQuantity(given)).toBe(written);
});

test('the canonical text is the same quantity and is stable', () => {
  const unit = fc.constantFrom('', 'm', 'k', 'M', 'G', 'Ki', 'Mi', 'Gi', 'Ti');
  fc.assert(
    fc.property(fc.nat({ max: 1_000_000 }), unit, (value, suffix) => {
      const written = canonicalQuantity(`${value}${suffix}`);
      expect(compareQuantities(written, `${value}${suffix}`)).toBe(0);
      expect(canonicalQuantity(written)).toBe(written);
    }),
  );
});
