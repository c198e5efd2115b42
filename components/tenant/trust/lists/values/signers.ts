import type { KeyObject, X509Certificate } from 'node:crypto';
import { findBase64Any } from '#core/encoding/base64.ts';
import { findCertificate, sha256, subjectOf } from './certificates.ts';
import { badSignature } from './fault.ts';
import type { Signer } from './list.ts';

/** The signer that an import accepts. */
export interface Pin {
  /** SHA-256 of the signer's certificate, hex; absent: any signer, which a person has confirmed. */
  readonly signerSha256: string | undefined;
  /** A signer's certificate must be valid at this time. */
  readonly nowMs: number;
}

interface Candidate extends Signer {
  readonly key: KeyObject;
  readonly der: Buffer;
}

const mostCertificates = 10;
const leastRsaBits = 2048;
const curves: readonly (string | undefined)[] = ['prime256v1', 'secp384r1', 'secp521r1'];

/**
 * The certificate whose key is tried: the pinned one of those that a signature carries, or without a pin the first one.
 * The carried certificates are not trusted by being there.
 *
 * @param carried base64 of DER, without white space
 * @throws ListFault signature
 */
export function chooseSigner(carried: readonly string[], { signerSha256, nowMs }: Pin): Candidate {
  if (carried.length === 0 || carried.length > mostCertificates) {
    throw badSignature(`the signature must carry 1 to ${mostCertificates} certificates`);
  }
  const all = carried.map(candidateOf);
  const chosen =
    signerSha256 === undefined ? all[0] : all.find(({ thumbprint }) => thumbprint === signerSha256);
  if (chosen === undefined) throw badSignature('the list is not signed by the pinned signer');
  const { certificate, ...candidate } = chosen;
  if (certificate.validFromDate.getTime() > nowMs || certificate.validToDate.getTime() < nowMs) {
    throw badSignature('the certificate of the signer is not valid now');
  }
  if (!isStrong(candidate.key)) throw badSignature('the key of the signer is too weak, or of another kind');
  return candidate;
}

function candidateOf(text: string): Candidate & { readonly certificate: X509Certificate } {
  const der = findBase64Any(text);
  const certificate = der && findCertificate(der);
  if (certificate === undefined) throw badSignature('the signature carries what is no certificate');
  const { raw, publicKey } = certificate;
  return {
    certificate,
    key: publicKey,
    der: raw,
    thumbprint: sha256(raw),
    subjectDn: subjectOf(certificate),
  };
}

function isStrong({ asymmetricKeyType, asymmetricKeyDetails = {} }: KeyObject): boolean {
  if (asymmetricKeyType === 'rsa') return (asymmetricKeyDetails.modulusLength ?? 0) >= leastRsaBits;
  return asymmetricKeyType === 'ec' && curves.includes(asymmetricKeyDetails.namedCurve);
}
