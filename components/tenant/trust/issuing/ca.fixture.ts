import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import {
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate,
  X509CertificateGenerator,
  X509Crl,
} from '@peculiar/x509';

const dayMs = 86_400_000;

/** A certificate of tests with its keys; it breaks every rule that it is told to break. */
export interface TestCertificate {
  readonly der: Buffer;
  readonly pem: string;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly name: string;
}

interface TestRequest {
  readonly name: string;
  /** The certificate that signs; its own key when absent. */
  readonly issuer?: TestCertificate;
  /** Name of the issuer, where it is not that of the certificate that signs. */
  readonly issuerName?: string;
  /** The key of the subject, when another program has it. */
  readonly spki?: Uint8Array;
  readonly keys?: webcrypto.CryptoKeyPair;
  readonly key?: KeyKind;
  readonly hash?: 'SHA-1' | 'SHA-256' | 'SHA-384' | 'SHA-512';
  /** True for CAs; absent: no basic constraints. */
  readonly isAuthority?: boolean;
  readonly pathLength?: number;
  readonly usages?: number;
  readonly extendedUsages?: readonly string[];
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly extra?: readonly {
    readonly oid: string;
    readonly critical: boolean;
    readonly value: Uint8Array;
  }[];
}

type KeyKind = 'P-256' | 'P-384' | 'P-521' | 'RSA-2048' | 'RSA-1024' | 'RSA-PSS' | 'RSA-3' | 'Ed25519';

export const usages = KeyUsageFlags;

export async function makeCertificate(request: TestRequest): Promise<TestCertificate> {
  const keys = request.keys ?? (await makeKeys(request.key ?? 'P-256'));
  const { issuer, name } = request;
  const publicKey = request.spki === undefined ? keys.publicKey : new Uint8Array(request.spki).buffer;
  const now = Date.now();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: `40${randomBytes(15).toString('hex')}`,
    subject: name,
    issuer: request.issuerName ?? issuer?.name ?? name,
    notBefore: new Date(request.fromMs ?? now - dayMs),
    notAfter: new Date(request.toMs ?? now + 300 * dayMs),
    publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    signingAlgorithm: { hash: request.hash ?? 'SHA-256', saltLength: 32 },
    extensions: extensionsOf(request),
  });
  const der = Buffer.from(certificate.rawData);
  return { der, pem: `${new X509Certificate(der).toString('pem')}\n`, keys, name };
}

/** A CA with the usual extensions. */
export function makeCa(name: string, more: Omit<TestRequest, 'name'> = {}): Promise<TestCertificate> {
  return makeCertificate({
    name,
    isAuthority: true,
    usages: KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign,
    ...more,
  });
}

function extensionsOf(request: TestRequest): Extension[] {
  const { isAuthority, pathLength, usages: flags, extendedUsages, extra = [] } = request;
  return [
    ...(isAuthority === undefined ? [] : [new BasicConstraintsExtension(isAuthority, pathLength, true)]),
    ...(flags === undefined ? [] : [new KeyUsagesExtension(flags, true)]),
    ...(extendedUsages === undefined ? [] : [new ExtendedKeyUsageExtension([...extendedUsages])]),
    ...extra.map(({ oid, critical, value }) => new Extension(oid, critical, new Uint8Array(value))),
  ];
}

async function makeKeys(kind: KeyKind): Promise<webcrypto.CryptoKeyPair> {
  const { subtle } = webcrypto;
  if (kind === 'Ed25519') {
    const made = await subtle.generateKey('Ed25519', true, ['sign', 'verify']);
    if ('privateKey' in made) return made;
    throw new Error('no pair of keys');
  }
  if (kind.startsWith('P-'))
    return subtle.generateKey({ name: 'ECDSA', namedCurve: kind }, true, ['sign', 'verify']);
  return subtle.generateKey(
    {
      name: kind === 'RSA-PSS' ? 'RSA-PSS' : 'RSASSA-PKCS1-v1_5',
      hash: 'SHA-256',
      modulusLength: kind === 'RSA-1024' ? 1024 : 2048,
      publicExponent: new Uint8Array(kind === 'RSA-3' ? [3] : [1, 0, 1]),
    },
    true,
    ['sign', 'verify'],
  );
}

/** Number, revoked serial numbers and reasons of a revocation list, and the hours that it holds. */
export function readCrl(bytes: Buffer) {
  const crl = new X509Crl(bytes);
  const number = crl.extensions.find(({ type }) => type === '2.5.29.20')?.value ?? new ArrayBuffer(0);
  return {
    number: Number.parseInt(Buffer.from(number).subarray(2).toString('hex'), 16),
    serials: crl.entries.map(({ serialNumber }) => serialNumber).sort(),
    reasons: crl.entries.map(({ reason }) => reason),
    hours: ((crl.nextUpdate?.getTime() ?? 0) - crl.thisUpdate.getTime()) / 3_600_000,
  };
}
