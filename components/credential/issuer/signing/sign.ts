import { verify, X509Certificate } from 'node:crypto';
import { sha256 } from '#core/crypto/hash.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { refusal } from '../../errors.ts';
import type { Issuer, Issuers } from './issuers.ts';

interface Signing {
  readonly issuer: Issuer;
  readonly chain: readonly Uint8Array[];
  /** ASCII. */
  readonly signingInput: string;
}

/**
 * Signs as an issuer. The signature is verified with the key of the leaf, so that nothing leaves that its certificate
 * does not fit: the key of the organisation may have changed since.
 * @throws AppError unprocessable CERT_KEY_MISMATCH, and those of `Issuers.sign`
 */
export async function signAsIssuer(
  issuers: Pick<Issuers, 'sign'>,
  { issuer, chain, signingInput }: Signing,
): Promise<Uint8Array> {
  const signature = await issuers.sign(issuer.walletAddress, sha256(signingInput));
  const [leaf] = chain;
  if (leaf === undefined) return signature;
  const { publicKey } = new X509Certificate(leaf);
  const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
  if (!verify('sha256', Buffer.from(signingInput), key, signature)) throw refusal('CERT_KEY_MISMATCH');
  return signature;
}

/** A compact JWS of an issuer. */
export async function signJwt(
  issuers: Pick<Issuers, 'sign'>,
  { issuer, chain, header, payload }: Omit<Signing, 'signingInput'> & { header: object; payload: object },
): Promise<string> {
  const signingInput = [header, payload]
    .map((part) => encodeBase64Url(Buffer.from(JSON.stringify(part))))
    .join('.');
  const signature = await signAsIssuer(issuers, { issuer, chain, signingInput });
  return `${signingInput}.${encodeBase64Url(signature)}`;
}
