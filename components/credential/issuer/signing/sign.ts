import { sha256 } from '#core/crypto/hash.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { utf8 } from '#core/encoding/text.ts';
import { parseCertificate } from '#core/trust/certificate.ts';
import { refusal } from '../../errors.ts';
import type { Issuer, Issuers } from './issuers.ts';

interface Signing {
  readonly issuer: Issuer;
  readonly chain: readonly Uint8Array[];
}

const verifier = createVerifier(nodeEd25519());

/**
 * Signs a message by ES256 as an issuer; r and s, 32 bytes each. The signature is verified with the key of the leaf, so that
 * nothing leaves that its certificate does not fit: the key of the organisation may have changed since.
 * @throws AppError unprocessable CERT_KEY_MISMATCH, and those of `Issuers.sign`
 */
export async function signAsIssuer(
  issuers: Pick<Issuers, 'sign'>,
  { issuer, chain }: Signing,
  message: Uint8Array,
): Promise<Uint8Array> {
  const signature = await issuers.sign(issuer.walletAddress, sha256(message));
  const [leaf] = chain;
  if (leaf === undefined) return signature;
  const { spki: publicKey } = parseCertificate(leaf);
  if (!verifier.verify({ algorithm: 'NISTP256', publicKey, message, signature }))
    throw refusal('CERT_KEY_MISMATCH');
  return signature;
}

/** A compact JWS of an issuer. */
export async function signJwt(
  issuers: Pick<Issuers, 'sign'>,
  { header, payload, ...signing }: Signing & { readonly header: object; readonly payload: object },
): Promise<string> {
  const signingInput = [header, payload]
    .map((part) => encodeBase64Url(Buffer.from(JSON.stringify(part))))
    .join('.');
  const signature = await signAsIssuer(issuers, signing, utf8(signingInput));
  return `${signingInput}.${encodeBase64Url(signature)}`;
}
