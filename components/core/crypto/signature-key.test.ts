import { constants, generateKeyPairSync, sign } from 'node:crypto';
import { calculateJwkThumbprint } from 'jose';
import { expect, it } from 'vitest';
import { encodeBase64Url } from '../encoding/base64.ts';
import {
  findJwkKey,
  findSpkiKey,
  isJoseAlgorithm,
  type JoseAlgorithm,
  jwkThumbprint,
  type SignatureKey,
  spkiOfKey,
  verifyJose,
} from './signature-key.ts';

const message = Buffer.from('message');

function pairOf(kind: 'P-256' | 'P-384' | 'P-521' | 'Ed25519' | 'RSA') {
  if (kind === 'Ed25519') return generateKeyPairSync('ed25519');
  return kind === 'RSA'
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve: kind });
}

const FACTS: readonly (readonly [JoseAlgorithm, Parameters<typeof pairOf>[0], string | null])[] = [
  ['ES256', 'P-256', 'sha256'],
  ['ES384', 'P-384', 'sha384'],
  ['ES512', 'P-521', 'sha512'],
  ['EdDSA', 'Ed25519', null],
  ['Ed25519', 'Ed25519', null],
  ['PS256', 'RSA', 'sha256'],
];

it.each(FACTS)('%s', (algorithm, kind, hash) => {
  const { privateKey, publicKey } = pairOf(kind);
  const key = findSpkiKey(publicKey.export({ format: 'der', type: 'spki' }));
  if (key === undefined) throw new Error('no key');
  expect(key.kind).toBe(kind);
  const pss = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 };
  const options = kind === 'RSA' ? pss : { dsaEncoding: 'ieee-p1363' as const };
  const signature = sign(hash, message, { key: privateKey, ...options });
  expect(verifyJose(algorithm, key, message, signature)).toBe(true);
  expect(verifyJose(algorithm, key, Buffer.from('other'), signature)).toBe(false);
  expect(verifyJose(algorithm, key, message, signature.subarray(1))).toBe(false);
  expect(verifyJose(algorithm, key, message, Buffer.alloc(signature.length))).toBe(false);
  for (const [other, otherKind] of FACTS) {
    if (otherKind !== kind) expect(verifyJose(other, key, message, signature)).toBe(false);
  }
  if (kind === 'RSA') return;
  const jwk = { ...publicKey.export({ format: 'jwk' }) };
  const again: SignatureKey | undefined = findJwkKey(jwk);
  expect(again && Buffer.from(spkiOfKey(again))).toEqual(Buffer.from(spkiOfKey(key)));
});

it('thumbprints are those of RFC 7638 and RFC 8037 appendix A.3', async () => {
  const example = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
  expect(encodeBase64Url(jwkThumbprint(example) ?? new Uint8Array())).toBe(
    'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k',
  );
  const jwk = { ...pairOf('P-256').publicKey.export({ format: 'jwk' }), kid: 'a', use: 'sig' };
  expect(encodeBase64Url(jwkThumbprint(jwk) ?? new Uint8Array())).toBe(await calculateJwkThumbprint(jwk));
  expect(jwkThumbprint({ ...jwk, y: jwk.x })).toBeUndefined();
});

it('keys that are none', () => {
  const { publicKey } = pairOf('P-256');
  const jwk = { ...publicKey.export({ format: 'jwk' }) };
  const bad: readonly unknown[] = [
    undefined,
    null,
    'a',
    [],
    {},
    { ...jwk, d: jwk.x },
    { ...jwk, k: jwk.x },
    { ...jwk, kty: 'RSA' },
    { ...jwk, crv: 'P-384' },
    { ...jwk, crv: 'toString' },
    { ...jwk, x: `${jwk.x}=` },
    { ...jwk, x: jwk.y },
    { ...jwk, y: undefined },
    { kty: 'OKP', crv: 'Ed25519', x: jwk.x, y: jwk.y },
    { kty: 'OKP', crv: 'X25519', x: jwk.x },
    { kty: 'oct', k: 'AAAA' },
  ];
  for (const each of bad) expect([each, findJwkKey(each)]).toEqual([each, undefined]);
  const spki = publicKey.export({ format: 'der', type: 'spki' });
  const short = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({
    format: 'der',
    type: 'spki',
  });
  const odd = generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey.export({
    format: 'der',
    type: 'spki',
  });
  for (const der of [short, odd, spki.subarray(1), Buffer.of()]) expect(findSpkiKey(der)).toBeUndefined();
});

it('a curve is named, not described', () => {
  const options = { namedCurve: 'P-256', paramEncoding: 'explicit' } as const;
  const { publicKey } = generateKeyPairSync('ec', options);
  expect(publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
  expect(findSpkiKey(publicKey.export({ format: 'der', type: 'spki' }))).toBeUndefined();
});

it('names of algorithms', () => {
  for (const name of ['none', 'HS256', 'RS256', 'es256', '', 'toString', undefined, 1]) {
    expect(isJoseAlgorithm(name)).toBe(false);
  }
  expect(isJoseAlgorithm('ES256')).toBe(true);
});
