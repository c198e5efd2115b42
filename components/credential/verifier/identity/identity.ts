import { type KeyObject, sign, type X509Certificate } from 'node:crypto';
import { sha256 } from '#core/crypto/hash.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { fault, readBundle } from './bundle.ts';

/** The certificate and key by which wallets know this verifier (OpenID4VP 1.0, section 5.9.3). */
export interface VerifierIdentity {
  readonly host: string;
  /** Standard base64, leaf first, without a self-signed certificate above the leaf. */
  readonly x5c: readonly string[];
  clientId(prefix: 'x509_san_dns' | 'x509_hash'): string;
  /** A compact JWS of type `typ`, ES256. */
  sign(typ: string, payload: object): string;
}

/** The identities of this verifier, which change with its certificate. */
export interface Verifiers {
  current(): VerifierIdentity;
  /** The identity that wallets know by a client id; undefined when this process does not have it, or no longer. */
  find(clientId: string): VerifierIdentity | undefined;
}

/** @param identities the present one first, at any time */
export function verifiersOf(identities: () => readonly [VerifierIdentity, ...VerifierIdentity[]]): Verifiers {
  const prefixes = ['x509_san_dns', 'x509_hash'] as const;
  return {
    current: () => identities()[0],
    find: (clientId) =>
      identities().find((each) => prefixes.some((prefix) => each.clientId(prefix) === clientId)),
  };
}

interface IdentityRules {
  /** The dNSName that the leaf must have. */
  readonly host: string;
  /** Of the bundle; undefined where it has none. */
  readonly password?: string | undefined;
  readonly mayBeSelfSigned: boolean;
  readonly nowMs: number;
}

/**
 * Reads a bundle of a P-256 key and its certificates: PEM with the leaf first, or PFX.
 * @throws ConfigError naming Haip__VerifierCertificate
 */
export function readIdentity(
  bundle: Buffer,
  { host, password, mayBeSelfSigned, nowMs }: IdentityRules,
): VerifierIdentity {
  const { key, certificates } = readBundle(bundle, password);
  const [leaf] = certificates;
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') throw fault('the key is not P-256');
  const names = leaf.subjectAltName?.split(', ') ?? [];
  if (!names.includes(`DNS:${host}`)) throw fault(`the certificate has no dNSName ${host}`);
  if (leaf.validToDate.getTime() <= nowMs) throw fault('the certificate has expired');
  if (!mayBeSelfSigned && isSelfSigned(leaf)) throw fault('the certificate is self-signed');
  const chain = certificates.filter((one, index) => index === 0 || !isSelfSigned(one));
  return identityOf({ host, leaf, chain, key });
}

function isSelfSigned(certificate: X509Certificate): boolean {
  return certificate.checkIssued(certificate) && certificate.verify(certificate.publicKey);
}

interface Parts {
  readonly host: string;
  readonly leaf: X509Certificate;
  readonly chain: readonly X509Certificate[];
  readonly key: KeyObject;
}

function identityOf({ host, leaf, chain, key }: Parts): VerifierIdentity {
  const x5c = chain.map(({ raw }) => raw.toString('base64'));
  const hash = encodeBase64Url(sha256(leaf.raw));
  return {
    host,
    x5c,
    clientId: (prefix) => (prefix === 'x509_hash' ? `x509_hash:${hash}` : `x509_san_dns:${host}`),
    sign: (typ, payload) => {
      const input = [{ alg: 'ES256', typ, x5c }, payload]
        .map((part) => encodeBase64Url(Buffer.from(JSON.stringify(part))))
        .join('.');
      const signature = sign('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
      return `${input}.${encodeBase64Url(signature)}`;
    },
  };
}
