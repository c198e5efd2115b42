import 'reflect-metadata';
import { randomBytes, webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  CRLDistributionPointsExtension,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  type Name,
  Pkcs10CertificateRequestGenerator,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
  X509CrlGenerator,
  type X509CrlReason,
} from '@peculiar/x509';
import type { Sign } from '../keys/organization-keys.ts';

const KEY_ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256' } as const;
const SIGNING_ALGORITHM = { name: 'ECDSA', hash: 'SHA-256' } as const;
/** Purpose of document signers (ISO 18013-5, annex B.1.4); it does not narrow other formats, which name none. */
const documentSigner = '1.0.18013.5.1.2';
const CRL_NUMBER = '2.5.29.20';

/** Milliseconds since the epoch, in whole seconds; both ends belong to the validity. */
export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

interface RootRequest extends Validity {
  readonly name: Name;
  /** SubjectPublicKeyInfo of the key that `sign` signs with. */
  readonly spki: Buffer;
  readonly sign: Sign;
}

/** The self-signed certificate of the authority of an organisation (RFC 5280), in DER: it signs leaves and lists only. */
export async function makeRoot({ name, spki, sign, ...validity }: RootRequest): Promise<Buffer> {
  const publicKey = await importKey(spki);
  const certificate = await X509CertificateGenerator.create(
    {
      ...common(validity),
      subject: name,
      issuer: name,
      publicKey,
      signingKey: publicKey,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(publicKey),
        await AuthorityKeyIdentifierExtension.create(publicKey),
      ],
    },
    cryptoOf(sign),
  );
  return Buffer.from(certificate.rawData);
}

interface LeafRequest extends RootRequest {
  /** DER of the root, whose key `sign` signs with. */
  readonly root: Uint8Array;
  /** URI of the subject alternative name. */
  readonly uri: string;
  /** Domain or address of the subject alternative name. */
  readonly host: string;
  readonly crlUrl: string;
}

/**
 * The certificate of a P-256 key of an organisation under its root, in DER: it signs credentials, no certificates. It has no basic
 * constraints, as those of no authority need none (RFC 5280, section 4.2.1.9), and there are wallets that read no empty ones.
 */
export async function makeLeaf(request: LeafRequest): Promise<Buffer> {
  const { name, spki, sign, root, uri, host, crlUrl, ...validity } = request;
  const [issuer, publicKey] = [new X509Certificate(Buffer.from(root)), await importKey(spki)];
  const certificate = await X509CertificateGenerator.create(
    {
      ...common(validity),
      subject: name,
      issuer: issuer.subjectName,
      publicKey,
      signingKey: publicKey,
      extensions: [
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([documentSigner]),
        new SubjectAlternativeNameExtension([
          { type: 'url', value: uri },
          { type: isIP(host) === 0 ? 'dns' : 'ip', value: host },
        ]),
        new CRLDistributionPointsExtension([crlUrl]),
        await AuthorityKeyIdentifierExtension.create(issuer),
        await SubjectKeyIdentifierExtension.create(publicKey),
      ],
    },
    cryptoOf(sign),
  );
  return Buffer.from(certificate.rawData);
}

/** A certificate that the list revokes. */
export interface CrlEntry {
  /** Hexadecimal. */
  readonly serialNumber: string;
  readonly revokedAtMs: number;
  /** CRLReason of RFC 5280; none when undefined. */
  readonly reason: X509CrlReason | undefined;
}

interface CrlRequest {
  /** DER of the root, whose key `sign` signs with. */
  readonly root: Uint8Array;
  readonly number: number;
  readonly thisUpdateMs: number;
  readonly nextUpdateMs: number;
  readonly entries: readonly CrlEntry[];
  readonly sign: Sign;
}

/** The revocation list of a root (RFC 5280, section 5), in DER. */
export async function makeCrl(request: CrlRequest): Promise<Buffer> {
  const issuer = new X509Certificate(Buffer.from(request.root));
  const crl = await X509CrlGenerator.create(
    {
      issuer: issuer.subjectName,
      thisUpdate: new Date(request.thisUpdateMs),
      nextUpdate: new Date(request.nextUpdateMs),
      signingKey: await issuer.publicKey.export(),
      signingAlgorithm: SIGNING_ALGORITHM,
      entries: request.entries.map(({ serialNumber, revokedAtMs, reason }) => ({
        serialNumber,
        revocationDate: new Date(revokedAtMs),
        ...(reason !== undefined && { reason }),
      })),
      extensions: [
        await AuthorityKeyIdentifierExtension.create(issuer),
        new Extension(CRL_NUMBER, false, integerOf(request.number)),
      ],
    },
    cryptoOf(request.sign),
  );
  return Buffer.from(crl.rawData);
}

/** A certificate signing request for a key of an organisation (RFC 2986), in PEM. */
export async function makeRequest({ name, spki, sign }: Omit<RootRequest, keyof Validity>): Promise<string> {
  const publicKey = await importKey(spki);
  const request = await Pkcs10CertificateRequestGenerator.create(
    // The generator reads the algorithm of the private key alone; `sign` has the key.
    { name, keys: { publicKey, privateKey: publicKey }, signingAlgorithm: SIGNING_ALGORITHM },
    cryptoOf(sign),
  );
  return `${request.toString('pem').trimEnd()}\n`;
}

function common({ notBeforeMs, notAfterMs }: Validity) {
  return {
    serialNumber: serialNumber(),
    notBefore: new Date(notBeforeMs),
    notAfter: new Date(notAfterMs),
    signingAlgorithm: SIGNING_ALGORITHM,
  };
}

/** 16 random bytes, 126 bits of them random, as a positive number without leading zeros; hexadecimal. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes.toString('hex');
}

/** DER of a positive INTEGER. */
function integerOf(value: number): Uint8Array<ArrayBuffer> {
  const hex = value.toString(16);
  const digits = hex.length % 2 === 0 ? hex : `0${hex}`;
  const content = Buffer.from(Number.parseInt(digits.slice(0, 2), 16) < 0x80 ? digits : `00${digits}`, 'hex');
  return new Uint8Array([0x02, content.length, ...content]);
}

function importKey(spki: Buffer): Promise<webcrypto.CryptoKey> {
  return webcrypto.subtle.importKey('spki', Buffer.from(spki), KEY_ALGORITHM, true, ['verify']);
}

/** The platform's cryptography, in which signatures are those of `sign`: private keys are in the wallet service. */
function cryptoOf(sign: Sign): webcrypto.Crypto {
  const subtle = replaced(
    webcrypto.subtle,
    'sign',
    async (_algorithm: unknown, _key: unknown, data: ArrayBuffer) => {
      const signature = await sign(new Uint8Array(data));
      return new Uint8Array(signature).buffer;
    },
  );
  return replaced(webcrypto, 'subtle', subtle);
}

function replaced<T extends object>(target: T, name: keyof T, by: unknown): T {
  return new Proxy(target, {
    get: (original, property) => {
      if (property === name) return by;
      const value: unknown = Reflect.get(original, property, original);
      return typeof value === 'function' ? value.bind(original) : value;
    },
  });
}
