import { createHmac, createPublicKey, hash, randomBytes, timingSafeEqual, verify } from 'node:crypto';

const dsaEncoding = 'ieee-p1363';
const encode = (value: object | string): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString());

/** Nonces that are recognised by a code of authentication. */
export class RawNonces {
  readonly #secret = randomBytes(32);

  create(): string {
    const body = randomBytes(16);
    return Buffer.concat([body, this.#mac(body)]).toString('base64url');
  }

  assert(nonce: string): void {
    const bytes = Buffer.from(nonce, 'base64url');
    if (!timingSafeEqual(this.#mac(bytes.subarray(0, 16)), bytes.subarray(16)))
      throw new Error('the nonce is not known');
  }

  #mac(body: Uint8Array): Buffer {
    return createHmac('sha256', this.#secret).update(body).digest();
  }
}

/** The key that a proof proves, with its nonce (OpenID4VCI 1.0, appendix F.1). */
export function verifyProof(proof: string, audience: string) {
  const [head, body, signature = ''] = proof.split('.');
  const { jwk, typ, alg } = decode(head);
  const { aud, iat, nonce } = decode(body);
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const isSigned = verify(
    'sha256',
    Buffer.from(`${head}.${body}`),
    { key, dsaEncoding },
    Buffer.from(signature, 'base64url'),
  );
  const isFresh = Math.abs(Date.now() / 1000 - iat) < 300;
  if (!isSigned || !isFresh || aud !== audience || alg !== 'ES256' || typ !== 'openid4vci-proof+jwt')
    throw new Error('the proof does not verify');
  const { kty, crv, x, y } = jwk;
  const holder = hash('sha256', JSON.stringify({ crv, kty, x, y }), 'base64url');
  return { jwk: { kty, crv, x, y }, holder, nonce: String(nonce) };
}

interface Draft {
  readonly claims: Readonly<Record<string, unknown>>;
  readonly issuer: string;
  readonly x5c: readonly string[];
  readonly jwk: object;
  readonly index: number;
}

/** An SD-JWT VC before it is signed (RFC 9901): the text to be signed, and the disclosures. */
export function draftSdJwt({ claims, issuer, x5c, jwk, index }: Draft) {
  const disclosures = Object.entries(claims).map(([name, value]) =>
    encode([randomBytes(16).toString('base64url'), name, value] as object),
  );
  const payload = {
    iss: issuer,
    vct: 'urn:platform:credential:site-permit',
    iat: Math.floor(Date.now() / 1000),
    cnf: { jwk },
    status: { status_list: { idx: index, uri: `${issuer}/lists/1` } },
    _sd: disclosures.map((one) => hash('sha256', one, 'base64url')).sort(),
    _sd_alg: 'sha-256',
  };
  const input = `${encode({ alg: 'ES256', typ: 'dc+sd-jwt', x5c })}.${encode(payload)}`;
  return { input, disclosures };
}
