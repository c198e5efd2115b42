import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { AppError } from '#core/errors/errors.ts';
import type { Clock } from '#kit/clock/clock.ts';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' } as const;
const AUTHORITY_LIFE_MS = 10 * 365 * 86_400_000;
const AUTHORITY_RENEWAL_MS = 60 * 86_400_000;

/** What a leaf says. The rules of X.509-SVIDs are the caller's: tests make leaves that break them. */
export interface LeafRequest {
  readonly uris: readonly string[];
  readonly commonName: string;
  /** Milliseconds since the epoch. */
  readonly notBeforeMs: number;
  /** Milliseconds since the epoch. */
  readonly notAfterMs: number;
  /** Default false. */
  readonly certificateAuthority?: boolean;
  /** Default digitalSignature. */
  readonly usages?: KeyUsageFlags;
}

export interface Leaf {
  readonly certificateDer: Uint8Array;
  /** PKCS#8. */
  readonly keyDer: Uint8Array;
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** A certificate authority of one trust domain. */
export interface Authority {
  readonly trustDomain: string;
  readonly certificateDer: Uint8Array;
  readonly certificatePem: string;
  /** Makes a P-256 key and a leaf certificate for it. */
  issue(request: LeafRequest): Promise<Leaf>;
}

/** A new P-256 authority that lives in memory only. */
export async function createAuthority(trustDomain: string, clock: Clock): Promise<Authority> {
  return buildAuthority(trustDomain, await makeAuthority(trustDomain, clock));
}

/**
 * Loads the P-256 authority of a directory, or makes one at the first start and when less than 60 days of it are
 * left. Files: `ca.key` (PKCS#8 PEM, mode 0600) and `ca.crt`.
 *
 * Errors: conflict/ISSUER_TRUST_DOMAIN when the directory belongs to another trust domain.
 */
export async function openAuthority(dir: string, trustDomain: string, clock: Clock): Promise<Authority> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const keyPath = join(dir, 'ca.key');
  const certificatePath = join(dir, 'ca.crt');
  if (existsSync(keyPath) && existsSync(certificatePath)) {
    chmodSync(keyPath, 0o600);
    const certificate = new X509Certificate(readFileSync(certificatePath, 'utf8'));
    checkTrustDomain(certificate, trustDomain, dir);
    if (certificate.notAfter.getTime() - clock.nowMs() > AUTHORITY_RENEWAL_MS) {
      const key = await importKey(readFileSync(keyPath, 'utf8'));
      return buildAuthority(trustDomain, { key, certificate });
    }
  }
  const made = await makeAuthority(trustDomain, clock);
  writeWhole(keyPath, pemOf('PRIVATE KEY', await exportKey(made.key)), 0o600);
  writeWhole(certificatePath, withNewline(made.certificate.toString('pem')), 0o644);
  return buildAuthority(trustDomain, made);
}

interface KeyAndCertificate {
  readonly key: webcrypto.CryptoKey;
  readonly certificate: X509Certificate;
}

function checkTrustDomain(certificate: X509Certificate, trustDomain: string, dir: string): void {
  const names = certificate.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  if (names.some((name) => name.value === `spiffe://${trustDomain}`)) return;
  throw new AppError(
    'conflict',
    'ISSUER_TRUST_DOMAIN',
    `the certificate authority in ${dir} belongs to another installation than ${trustDomain}`,
  );
}

async function makeAuthority(trustDomain: string, clock: Clock): Promise<KeyAndCertificate> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `O=chancery, CN=${trustDomain}`,
    issuer: `O=chancery, CN=${trustDomain}`,
    notBefore: new Date(clock.nowMs() - 60_000),
    notAfter: new Date(clock.nowMs() + AUTHORITY_LIFE_MS),
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
  return { key: keys.privateKey, certificate };
}

function buildAuthority(trustDomain: string, own: KeyAndCertificate): Authority {
  return {
    trustDomain,
    certificateDer: new Uint8Array(own.certificate.rawData),
    certificatePem: withNewline(own.certificate.toString('pem')),
    issue: (request) => issueLeaf(own, request),
  };
}

async function issueLeaf(own: KeyAndCertificate, request: LeafRequest): Promise<Leaf> {
  const keys = await webcrypto.subtle.generateKey(KEY_ALGORITHM, true, ['sign', 'verify']);
  const names = request.uris.map((value) => ({ type: 'url' as const, value }));
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `O=chancery, CN=${request.commonName}`,
    issuer: own.certificate.subject,
    notBefore: new Date(request.notBeforeMs),
    notAfter: new Date(request.notAfterMs),
    publicKey: keys.publicKey,
    signingKey: own.key,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(request.certificateAuthority ?? false, undefined, true),
      new KeyUsagesExtension(request.usages ?? KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      ...(names.length > 0 ? [new SubjectAlternativeNameExtension(names)] : []),
      await AuthorityKeyIdentifierExtension.create(own.certificate),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  const keyDer = await exportKey(keys.privateKey);
  return {
    certificateDer: new Uint8Array(certificate.rawData),
    keyDer,
    certificatePem: withNewline(certificate.toString('pem')),
    keyPem: pemOf('PRIVATE KEY', keyDer),
  };
}

/** 16 random bytes, positive and without leading zeros, hexadecimal. */
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
  return await webcrypto.subtle.importKey('pkcs8', der, KEY_ALGORITHM, true, ['sign']);
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

/** Written beside and renamed: an interrupted first start leaves no half a key. */
function writeWhole(path: string, text: string, mode: number): void {
  const part = `${path}.${process.pid}`;
  writeFileSync(part, text, { mode, flush: true });
  chmodSync(part, mode);
  renameSync(part, path);
}
