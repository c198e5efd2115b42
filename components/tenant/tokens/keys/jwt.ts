import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { PublicJwk } from '../../database/schema.ts';
import type { TokenClaims } from '../claims/claims.ts';

/** Upper bound of an access token, which must fit into a header that the gateway accepts. */
const maxTokenBytes = 4096;

export interface SigningKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  /** The encoded protected header `{alg, kid, typ: at+jwt}`, the same for every token of this key. */
  readonly header: string;
}

/** A fresh P-256 key; its `kid` is the thumbprint of RFC 7638. */
export function generateSigningKey(): { publicJwk: PublicJwk; privateKeyDer: Buffer } {
  const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x = '', y = '' } = pair.publicKey.export({ format: 'jwk' });
  const kid = createHash('sha256')
    .update(JSON.stringify({ crv: 'P-256', kty: 'EC', x, y }))
    .digest('base64url');
  return {
    publicJwk: { kty: 'EC', crv: 'P-256', x, y, kid, alg: 'ES256', use: 'sig' },
    privateKeyDer: pair.privateKey.export({ format: 'der', type: 'pkcs8' }),
  };
}

export function loadSigningKey(kid: string, privateKeyDer: Buffer): SigningKey {
  const header = Buffer.from(JSON.stringify({ alg: 'ES256', kid, typ: 'at+jwt' })).toString('base64url');
  return { kid, privateKey: createPrivateKey({ key: privateKeyDer, format: 'der', type: 'pkcs8' }), header };
}

/** Signs an ES256 `at+jwt` (RFC 9068) on the calling thread: 40 µs, less than the transfer to a thread pool. */
export function signToken(key: SigningKey, claims: TokenClaims): string {
  const text = `${key.header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  const signature = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  const token = `${text}.${signature.toString('base64url')}`;
  if (token.length > maxTokenBytes) throw new RangeError(`access token of ${token.length} bytes`);
  return token;
}
