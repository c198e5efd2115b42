import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { fuzzing, isWithin, mutatedJson, mutatedText } from '../../encoding/testing/mutations.ts';
import type { PresentationCode } from '../presentation.ts';
import { disclosed, scene, testSeconds, testVct } from './testing/issuer.ts';
import { judgeSdJwtForm, type SdJwtVcExpectation, verifySdJwtVc } from './verify.ts';

vi.setConfig({ testTimeout: 1_200_000 });

const runs = fuzzing(process.env);

const { expectation, present, payload, header, holder } = scene();
const imported: SdJwtVcExpectation = { ...expectation, keyBinding: undefined };

const codes: readonly PresentationCode[] = [
  'FORMAT',
  'VCT_MISMATCH',
  'SIGNATURE',
  'DIGEST',
  'EXPIRED',
  'KB_MISSING',
  'KB_NONCE',
  'KB_AUD',
  'KB_SD_HASH',
  'KB_SIGNATURE',
];

/** The result; undefined when the text is refused, with one code of the table. */
function resultOf(text: string, expected = expectation) {
  const form = judgeSdJwtForm(text);
  const judged = form.result === undefined ? form : verifySdJwtVc(form.result, expected);
  if (judged.result === undefined) expect(codes).toContain(judged.violations[0].code);
  return judged.result;
}

const whole = present();
const original = resultOf(whole);

it('a changed presentation is refused', () => {
  expect(original?.claims).toMatchObject({ given_name: 'Ada', nationalities: ['DE', 'FR'] });
  fc.assert(
    fc.property(mutatedText(whole), (text) => (resultOf(text) === undefined) === (text !== whole)),
    runs(1_500),
  );
});

it('a changed credential is refused, or discloses less', () => {
  let accepted = 0;
  fc.assert(
    fc.property(mutatedText(whole), (text) => {
      const result = resultOf(text, imported);
      if (result === undefined) return true;
      accepted += 1;
      const { claims, ...others } = result;
      expect(others).toEqual({ ...original, claims: undefined, holderKey: undefined });
      return isWithin(claims, original?.claims);
    }),
    runs(1_500),
  );
  // its key binding is no part of it
  expect(accepted).toBeGreaterThan(10);
});

it('whatever an issuer and a holder sign, nothing but a judgement comes of it', () => {
  const parts = fc.record(
    {
      header: mutatedJson(header),
      payload: mutatedJson(payload),
      bindingHeader: mutatedJson({ alg: 'ES256', typ: 'kb+jwt' }),
      binding: mutatedJson({ iat: testSeconds }),
    },
    { requiredKeys: [] },
  );
  let accepted = 0;
  fc.assert(
    fc.property(parts, (change) => {
      const result = resultOf(present(change as Parameters<typeof present>[0]));
      if (result === undefined) return;
      accepted += 1;
      expect(result).toMatchObject({ vct: testVct, holderKey: { x: holder.jwk['x'], y: holder.jwk['y'] } });
      expect(result.expiresAt ?? testSeconds).toBeGreaterThan(testSeconds - 60);
    }),
    runs(1_000),
  );
  expect(accepted).toBeGreaterThan(10);
});

it('whatever a disclosure is, nothing but a judgement comes of it', () => {
  const items = mutatedJson(['salt', 'given_name', { a: [{ b: 'c' }], d: 'e' }]);
  fc.assert(
    fc.property(items, fc.boolean(), (item, isElement) => {
      const { text, digest } = disclosed(...(Array.isArray(item) ? item : [item]));
      const place = isElement ? { list: [{ '...': digest }] } : { _sd: [digest] };
      const { _sd, _sd_alg, nationalities, ...others } = payload;
      const made = { payload: { ...others, ...place }, disclosures: [text] };
      const result = resultOf(present(made));
      return result === undefined || result.vct === testVct;
    }),
    runs(700),
  );
});
