import { calculateJwkThumbprint, importJWK, jwtVerify } from 'jose';
import { expect, it } from 'vitest';
import { generateSigningKey, loadSigningKey, signToken } from './jwt.ts';

it('signs tokens that an independent library verifies', async () => {
  const made = generateSigningKey();
  const key = loadSigningKey(made.publicJwk.kid, made.privateKeyDer);
  const now = Math.floor(Date.now() / 1000);
  const token = signToken(key, { iss: 'urn:platform:demo', aud: ['demo:platform'], exp: now + 60, nbf: now });
  const options = {
    algorithms: ['ES256'],
    typ: 'at+jwt',
    issuer: 'urn:platform:demo',
    audience: 'demo:platform',
  };
  const verified = await jwtVerify(token, await importJWK({ ...made.publicJwk }), options);
  expect(verified.protectedHeader).toEqual({ alg: 'ES256', kid: made.publicJwk.kid, typ: 'at+jwt' });
});

it('names the key by its RFC 7638 thumbprint', async () => {
  const { publicJwk } = generateSigningKey();
  expect(publicJwk.kid).toBe(await calculateJwkThumbprint({ ...publicJwk }));
});

it('refuses to make a token that is too large for a header', () => {
  const made = generateSigningKey();
  const key = loadSigningKey(made.publicJwk.kid, made.privateKeyDer);
  expect(() => signToken(key, { name: 'x'.repeat(4096) })).toThrow(RangeError);
});
