import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import type { JsonObject } from '../../encoding/json.ts';
import { revealClaims } from './disclosures.ts';
import { conceal, disclosed, scene } from './testing/issuer.ts';
import { judgeSdJwtForm, verifySdJwtVc } from './verify.ts';

// Thousands of judgements, on machines that do other work as well.
vi.setConfig({ testTimeout: 30_000 });

const { expectation, present } = scene();

const reserved = new Set(['_sd', '...', '_sd_alg']);
const names = fc.string({ maxLength: 8 }).filter((name) => !reserved.has(name));
const { tree } = fc.letrec<{ tree: unknown; leaf: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    tie('leaf'),
    fc.array(tie('tree'), { maxLength: 4 }),
    fc.dictionary(names, tie('tree'), { maxKeys: 4, noNullPrototype: true }),
  ),
  leaf: fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null)),
}));
const claimSets = fc.dictionary(names, tree, { maxKeys: 5, noNullPrototype: true });

it('what is concealed at every level is revealed', () => {
  fc.assert(
    fc.property(claimSets, (claims) => {
      const disclosures: string[] = [];
      const payload = conceal(claims, disclosures) as JsonObject;
      expect(revealClaims(payload, disclosures)).toEqual(JSON.parse(JSON.stringify(claims)));
      // in any order, and with none of them
      expect(revealClaims(payload, disclosures.toReversed())).toEqual(JSON.parse(JSON.stringify(claims)));
      expect(revealClaims(payload, [])).toEqual({});
    }),
    { numRuns: 300 },
  );
});

it('a withheld disclosure withholds its children, which may not come alone', () => {
  fc.assert(
    fc.property(claimSets, fc.nat(), (claims, choice) => {
      const disclosures: string[] = [];
      const payload = conceal(claims, disclosures) as JsonObject;
      if (disclosures.length === 0) return;
      const without = disclosures.toSpliced(choice % disclosures.length, 1);
      // Either the disclosure had no children, or what is left is refused: never a claim from nowhere.
      try {
        const revealed = JSON.stringify(revealClaims(payload, without));
        expect(revealed.length).toBeLessThanOrEqual(JSON.stringify(claims).length);
      } catch (error) {
        expect(error).toMatchObject({ code: 'DIGEST' });
      }
    }),
    { numRuns: 200 },
  );
});

function accepts(text: string): boolean {
  const form = judgeSdJwtForm(text);
  return form.result !== undefined && verifySdJwtVc(form.result, expectation).violations.length === 0;
}

it('one changed character is refused wherever it is', () => {
  const text = present();
  expect(accepts(text)).toBe(true);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~.= ';
  for (let at = 0; at < text.length; at += 1) {
    const other = alphabet.charAt((at * 7) % alphabet.length);
    if (other === text.charAt(at)) continue;
    expect([at, accepts(text.slice(0, at) + other + text.slice(at + 1))]).toEqual([at, false]);
  }
});

it('one flipped bit is refused wherever it is', () => {
  const bytes = Buffer.from(present());
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.nat(7), (at, bit) => {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ (1 << bit);
      return !accepts(changed.toString('latin1'));
    }),
    { numRuns: 400 },
  );
});

it('nothing but a judgement comes of any text', () => {
  const part = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.json().map((text) => Buffer.from(text).toString('base64url')),
    fc.json().map((text) => disclosed('s', 'a', text).text),
  );
  const texts = fc
    .array(fc.tuple(part, fc.constantFrom('~', '.', '')), { maxLength: 12 })
    .map((parts) => parts.flat().join(''));
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), texts), (text) => {
      const form = judgeSdJwtForm(text);
      if (form.result === undefined) return form.violations[0].code === 'FORMAT';
      return verifySdJwtVc(form.result, expectation).violations.length === 1;
    }),
    { numRuns: 500 },
  );
});

it('nothing but a judgement comes of any signed payload', () => {
  const odd = fc.oneof(
    fc.json().map((text) => JSON.parse(text)),
    fc.constantFrom({ _sd: {} }, [{ '...': {} }], { _sd: [null] }, { '...': 'a' }, '', 0, [[[]]]),
  );
  const members = fc.constantFrom(
    'iss',
    'vct',
    'exp',
    'nbf',
    'iat',
    'cnf',
    'status',
    '_sd',
    '_sd_alg',
    '...',
    'a',
  );
  fc.assert(
    fc.property(fc.dictionary(members, odd), fc.array(odd, { maxLength: 3 }), (payload, items) => {
      const disclosures = items.map((item) => disclosed(item, 'a', item).text);
      const form = judgeSdJwtForm(present({ payload, disclosures }));
      if (form.result === undefined) throw new Error('not parsed');
      const { violations } = verifySdJwtVc(form.result, expectation);
      return violations.length === 1;
    }),
    { numRuns: 300 },
  );
});
