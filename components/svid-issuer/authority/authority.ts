import { issuerError } from '../errors.ts';
import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  type PublicKeyType,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import type { Clock } from '#kit/clock/clock.ts';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' } as const;

/**
 * Content of a leaf certificate. The caller applies the rules of X.509-SVIDs, because tests make leaves that break
 * them.
 */
export interface LeafRequest {
  readonly uris: readonly string[];
  /** For clients without SPIFFE that verify the server's name. */
  readonly dnsNames?: readonly string[];
  readonly commonName: string;
  /** Milliseconds since the epoch. */
  readonly notBeforeMs: number;
  /** Milliseconds since the epoch; no later than the authority itself. */
  readonly notAfterMs: number;
  /** Default false. */
  readonly certificateAuthority?: boolean;
  /** Default digitalSignature. */
  readonly usages?: KeyUsageFlags;
}

interface Certificate {
  readonly certificateDer: Uint8Array;
  readonly certificatePem: string;
}

export interface Leaf extends Certificate {
  /** PKCS#8. */
  readonly keyDer: Uint8Array;
  readonly keyPem: string;
}

/** A certificate authority of one trust domain. */
export interface Authority extends Certificate {
  readonly trustDomain: string;
  /** Milliseconds since the epoch. */
  readonly notAfterMs: number;
  /** Makes a P-256 key and a leaf certificate for it. */
  issue(request: LeafRequest): Promise<Leaf>;
  /** Issues a leaf certificate for a given public key. */
  sign(request: LeafRequest, publicKey: PublicKeyType): Promise<Certificate>;
}

/** An authority in stored form: PEM, the key as PKCS#8. */
export interface AuthorityPem {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** Creates the key and the self-signed certificate of a P-256 authority. */
export async function makeAuthority(
  trustDomain: string,
  clock: Clock,
  lifeMs: number,
): Promise<AuthorityPem> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `O=chancery, CN=${trustDomain}`,
    issuer: `O=chancery, CN=${trustDomain}`,
    notBefore: new Date(clock.nowMs() - 60_000),
    notAfter: new Date(clock.nowMs() + lifeMs),
    publicKey: keys.publicKey,
    signingKey: keys.privateKey,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      new SubjectAlternativeNameExtension([{ type: 'url', value: `spiffe://${trustDomain}` }]),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    certificatePem: withNewline(certificate.toString('pem')),
    keyPem: pemOf('PRIVATE KEY', await exportKey(keys.privateKey)),
  };
}

/**
 * Loads a stored authority.
 *
 * Errors: conflict/ISSUER_TRUST_DOMAIN when it belongs to another trust domain.
 */
export async function loadAuthority(pem: AuthorityPem, trustDomain: string): Promise<Authority> {
  const certificate = new X509Certificate(pem.certificatePem);
  checkTrustDomain(certificate, trustDomain);
  const key = await importKey(pem.keyPem);
  const sign = (request: LeafRequest, publicKey: PublicKeyType) =>
    signLeaf({ key, certificate }, request, publicKey);
  return {
    trustDomain,
    notAfterMs: certificate.notAfter.getTime(),
    ...present(certificate),
    sign,
    issue: async (request) => {
      const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
      const keyDer = await exportKey(keys.privateKey);
      return { ...(await sign(request, keys.publicKey)), keyDer, keyPem: pemOf('PRIVATE KEY', keyDer) };
    },
  };
}

interface KeyAndCertificate {
  readonly key: webcrypto.CryptoKey;
  readonly certificate: X509Certificate;
}

async function signLeaf(
  own: KeyAndCertificate,
  request: LeafRequest,
  publicKey: PublicKeyType,
): Promise<Certificate> {
  const names = [
    ...request.uris.map((value) => ({ type: 'url' as const, value })),
    ...(request.dnsNames ?? []).map((value) => ({ type: 'dns' as const, value })),
  ];
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `O=chancery, CN=${request.commonName}`,
    issuer: own.certificate.subject,
    notBefore: new Date(request.notBeforeMs),
    notAfter: new Date(Math.min(request.notAfterMs, own.certificate.notAfter.getTime())),
    publicKey,
    signingKey: own.key,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(request.certificateAuthority ?? false, undefined, true),
      new KeyUsagesExtension(request.usages ?? KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
      await AuthorityKeyIdentifierExtension.create(own.certificate),
      await SubjectKeyIdentifierExtension.create(publicKey),
    ],
  });
  return present(certificate);
}

function present(certificate: X509Certificate): Certificate {
  return {
    certificateDer: new Uint8Array(certificate.rawData),
    certificatePem: withNewline(certificate.toString('pem')),
  };
}

function checkTrustDomain(certificate: X509Certificate, trustDomain: string): void {
  const names = certificate.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  if (names.some((name) => name.value === `spiffe://${trustDomain}`)) return;
  throw issuerError(
    'ISSUER_TRUST_DOMAIN',
    `the certificate authority belongs to another installation than ${trustDomain}`,
  );
}

/** 16 random bytes as a positive number without leading zeros, hexadecimal. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

async function exportKey(key: webcrypto.CryptoKey): Promise<Uint8Array> {
  return new Uint8Array(await webcrypto.subtle.exportKey('pkcs8', key));
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = Buffer.from(pem.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
  return await webcrypto.subtle.importKey('pkcs8', der, KEY_ALGORITHM, false, ['sign']);
}

function pemOf(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

function withNewline(pem: string): string {
  return pem.endsWith('\n') ? pem : `${pem}\n`;
}
