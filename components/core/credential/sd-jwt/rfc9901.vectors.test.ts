import { expect, it } from 'vitest';
import { findJwkKey, verifyJose } from '../../crypto/signature-key.ts';
import { revealClaims } from './disclosures.ts';
import { verifyKeyBinding } from './key-binding.ts';
import { parseSdJwt } from './parse.ts';
import vectors from './vectors/rfc9901.json' with { type: 'json' };
import { judgeSdJwtForm, verifySdJwtVc } from './verify.ts';

const issuerKey = findJwkKey(vectors.issuerKey);
if (issuerKey === undefined) throw new Error('no key');
const atMs = vectors.issuedAt * 1000;
const keyBinding = {
  nonce: vectors.nonce,
  audience: vectors.audience,
  algorithms: ['ES256'],
} as const;

it.each(vectors.cases)('RFC 9901 $name', ({ presentation, processed }) => {
  const parsed = parseSdJwt(presentation);
  const { issuerJwt, disclosures } = parsed;
  expect(verifyJose('ES256', issuerKey, issuerJwt.signed, issuerJwt.signature)).toBe(true);
  const claims = revealClaims(issuerJwt.payload, disclosures);
  expect(claims).toEqual(processed);
  if (parsed.keyBinding !== undefined) {
    expect(verifyKeyBinding(parsed, claims, keyBinding, atMs)).toEqual(processed.cnf?.jwk);
  }
});

it('verifies the SD-JWT VC of RFC 9901 appendix A.3', () => {
  const presentation = vectors.cases.find(({ name }) => name.includes('A.3'))?.presentation ?? '';
  const parsed = judgeSdJwtForm(presentation).result;
  if (parsed === undefined) throw new Error('not parsed');
  const types = ['urn:eudi:pid:de:1'];
  const expected = { issuerKey, algorithms: ['ES256'], types, keyBinding, atMs } as const;
  const { violations, result } = verifySdJwtVc(parsed, expected);
  expect(violations).toEqual([]);
  expect(result).toMatchObject({
    vct: 'urn:eudi:pid:de:1',
    issuer: 'https://pid-issuer.bund.de.example',
    claims: { nationalities: ['DE'], age_equal_or_over: { '18': true } },
    status: undefined,
    expiresAt: 1_883_000_000,
  });
  const later = verifySdJwtVc(parsed, { ...expected, atMs: 1_883_000_061_000 });
  expect(later.violations.map(({ code }) => code)).toEqual(['EXPIRED']);
});
