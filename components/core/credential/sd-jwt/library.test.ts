import { createHash, type KeyObject, randomBytes, sign } from 'node:crypto';
import { SDJwtInstance, type SdJwtPayload } from '@sd-jwt/core';
import { expect, it } from 'vitest';
import { scene, testTimeMs, testVct } from './testing/issuer.ts';
import { judgeSdJwtForm, verifySdJwtVc } from './verify.ts';

const { issuer, holder, expectation } = scene();
const seconds = testTimeMs / 1000;

class CredentialInstance extends SDJwtInstance<SdJwtPayload> {
  protected override type = 'dc+sd-jwt';
}

const signerOf = (key: KeyObject) => (data: string) =>
  sign('sha256', Buffer.from(data), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url');

const library = new CredentialInstance({
  signer: signerOf(issuer.privateKey),
  signAlg: 'ES256',
  kbSigner: signerOf(holder.privateKey),
  kbSignAlg: 'ES256',
  hasher: (data) =>
    new Uint8Array(
      createHash('sha256')
        .update(typeof data === 'string' ? data : new Uint8Array(data))
        .digest(),
    ),
  hashAlg: 'sha-256',
  saltGenerator: () => randomBytes(16).toString('base64url'),
});

const claims = {
  iss: 'https://issuer.example',
  vct: testVct,
  exp: seconds + 1000,
  cnf: { jwk: holder.jwk },
  given_name: 'Ada',
  address: { locality: 'Ulm', country: 'DE' },
  nationalities: ['DE', 'FR'],
};

it('we accept what the library of OWF issues and presents', async () => {
  const issued = await library.issue(claims, {
    _sd: ['given_name', 'address'],
    _sd_decoy: 2,
    address: { _sd: ['locality', 'country'] },
    nationalities: { _sd: [0, 1] },
  });
  const presented = await library.present(
    issued,
    { address: { country: true }, nationalities: { 1: true } },
    { kb: { payload: { iat: seconds, aud: 'x509_san_dns:verifier.example', nonce: 'n-0123456789' } } },
  );
  const form = judgeSdJwtForm(presented);
  if (form.result === undefined) throw new Error(form.violations[0].message);
  const { violations, result } = verifySdJwtVc(form.result, expectation);
  expect(violations).toEqual([]);
  const { iss, vct, exp, cnf } = claims;
  expect(result?.claims).toEqual({ iss, vct, exp, cnf, address: { country: 'DE' }, nationalities: ['FR'] });
});
