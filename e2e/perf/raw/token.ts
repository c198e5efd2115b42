import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';

/** Claims of a token, as far as raw programs read them. */
interface Claims {
  readonly sub: string;
  readonly exp: number;
}

const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'at+jwt', kid: 'raw' })).toString('base64url');
const dsaEncoding = 'ieee-p1363';
const lifeSeconds = 3_600;

/** Signs ES256 JWTs of an hour with a key of P-256 as PEM. */
export function createTokenSigner(pem: string): (claims: object) => string {
  const key = createPrivateKey(pem);
  return (claims) => {
    const now = Math.floor(Date.now() / 1000);
    const times = { iat: now, nbf: now, exp: now + lifeSeconds };
    const text = `${header}.${Buffer.from(JSON.stringify({ ...claims, ...times })).toString('base64url')}`;
    return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding }).toString('base64url')}`;
  };
}

/**
 * Verifies such tokens. As in the product, a verified token is kept by its text, and only its expiry is judged again.
 * @param pem the public key
 */
export function createTokenCheck(pem: string): (token: string | undefined) => Claims {
  const key = createPublicKey(pem);
  const verified = new Map<string, Claims>();
  const read = (token: string): Claims => {
    const end = token.lastIndexOf('.');
    const signature = Buffer.from(token.slice(end + 1), 'base64url');
    if (!verify('sha256', Buffer.from(token.slice(0, end)), { key, dsaEncoding }, signature))
      throw new Error('the signature of a token does not verify');
    return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  };
  return (token = '') => {
    const claims = verified.get(token) ?? read(token);
    if (claims.exp * 1000 <= Date.now()) throw new Error('a token has expired');
    verified.set(token, claims);
    return claims;
  };
}

/** The token of an Authorization header. */
export function bearerIn(authorization: string | undefined): string | undefined {
  return authorization?.startsWith('Bearer ') === true ? authorization.slice('Bearer '.length) : undefined;
}
