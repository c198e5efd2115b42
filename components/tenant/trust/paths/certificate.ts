import { createHash } from 'node:crypto';
import {
  type DerElement,
  DerError,
  expectTag,
  readBoolean,
  readChildren,
  readElement,
  readInteger,
  readNamedBits,
  readObjectIdentifier,
  readSmallInteger,
  readTime,
  TAGS,
} from './der.ts';

/** Bits of the key usage extension (RFC 5280, section 4.2.1.3). */
export const KEY_USAGE = { digitalSignature: 1 << 0, keyCertSign: 1 << 5 } as const;

/** What path validation and the rules about certificates need to know of one (RFC 5280, section 4.1). */
export interface Certificate {
  readonly der: Uint8Array;
  /** SHA-256 of the DER, lower-case hexadecimal. */
  readonly thumbprint: string;
  /** DER of the names. */
  readonly subject: Uint8Array;
  readonly issuer: Uint8Array;
  /** DER of the SubjectPublicKeyInfo. */
  readonly spki: Uint8Array;
  /** DER of the AlgorithmIdentifier of the signature. */
  readonly signatureAlgorithm: Uint8Array;
  /** Lower-case hexadecimal. */
  readonly serialNumber: string;
  /** Milliseconds since the epoch; both ends belong to the validity. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly isAuthority: boolean;
  /** pathLenConstraint of an authority. */
  readonly pathLength: number | undefined;
  /** Bits of `KEY_USAGE`; undefined without the extension. */
  readonly keyUsage: number | undefined;
  /** Object identifiers; undefined without the extension. */
  readonly extendedKeyUsage: readonly string[] | undefined;
  readonly hasNameConstraints: boolean;
  /** Critical extensions that the rules of this folder do not know. */
  readonly unknownCritical: readonly string[];
}

const OIDS = {
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  certificatePolicies: '2.5.29.32',
  extendedKeyUsage: '2.5.29.37',
} as const;

/** Policies need no processing while none is required; constraints on policies are refused as unknown. */
const known: ReadonlySet<string> = new Set(Object.values(OIDS));

interface Extension {
  readonly critical: boolean;
  readonly value: Uint8Array;
}

/**
 * Parses one certificate of X.509 version 3, or one of version 1 or 2 without unique identifiers. Undefined for bytes
 * that are no strict DER of one, among them repeated extensions, serial numbers that are not positive or longer than 20
 * bytes, and two different signature algorithms.
 */
export function parseCertificate(der: Uint8Array): Certificate | undefined {
  try {
    return read(der);
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}

function read(der: Uint8Array): Certificate {
  const [tbs, algorithm, signature, ...more] = readChildren(readElement(der), TAGS.sequence);
  if (tbs === undefined || algorithm === undefined || more.length > 0) throw new DerError('certificate');
  expectTag(signature, TAGS.bitString);
  const { version, fields } = versionOf(readChildren(tbs, TAGS.sequence));
  const [serial, inner, issuer, validity, subject, spki, ...optional] = fields;
  if (serial === undefined || inner === undefined || validity === undefined) throw new DerError('fields');
  if (!Buffer.from(inner.bytes).equals(algorithm.bytes)) throw new DerError('signature algorithms differ');
  const [notBefore, notAfter, ...noMore] = readChildren(validity, TAGS.sequence);
  if (notBefore === undefined || notAfter === undefined || noMore.length > 0) throw new DerError('validity');
  return {
    der,
    thumbprint: createHash('sha256').update(der).digest('hex'),
    subject: expectTag(subject, TAGS.sequence).bytes,
    issuer: expectTag(issuer, TAGS.sequence).bytes,
    spki: expectTag(spki, TAGS.sequence).bytes,
    signatureAlgorithm: algorithm.bytes,
    serialNumber: serialOf(serial),
    notBeforeMs: readTime(notBefore),
    notAfterMs: readTime(notAfter),
    ...factsOf(extensionsOf(optional, version)),
  };
}

function versionOf(fields: readonly DerElement[]): {
  readonly version: number;
  readonly fields: readonly DerElement[];
} {
  const [first, ...rest] = fields;
  if (first?.tag !== 0xa0) return { version: 0, fields };
  const [version, ...more] = readChildren(first, 0xa0);
  if (version === undefined || more.length > 0) throw new DerError('version');
  return { version: readSmallInteger(version), fields: rest };
}

function serialOf(element: DerElement): string {
  const content = readInteger(element);
  const isPositive = (content[0] ?? 0x80) < 0x80 && content.some((byte) => byte !== 0);
  if (!isPositive || content.length > 20) throw new DerError('serial number');
  return Buffer.from(content).toString('hex');
}

/** The extensions by object identifier. */
function extensionsOf(optional: readonly DerElement[], version: number): ReadonlyMap<string, Extension> {
  const [wrapped, ...more] = optional;
  const extensions = new Map<string, Extension>();
  if (wrapped === undefined) return extensions;
  if (more.length > 0 || version !== 2) throw new DerError('optional fields');
  const [list, ...noMore] = readChildren(wrapped, 0xa3);
  if (list === undefined || noMore.length > 0) throw new DerError('extensions');
  for (const extension of readChildren(list, TAGS.sequence)) {
    const [id, ...parts] = readChildren(extension, TAGS.sequence);
    const value = parts.pop();
    const [critical, ...excess] = parts;
    if (id === undefined || excess.length > 0) throw new DerError('extension');
    const oid = readObjectIdentifier(id);
    if (extensions.has(oid)) throw new DerError('repeated extension');
    extensions.set(oid, {
      critical: critical !== undefined && readBoolean(critical),
      value: expectTag(value, TAGS.octetString).content,
    });
  }
  return extensions;
}

type Facts = Pick<
  Certificate,
  'isAuthority' | 'pathLength' | 'keyUsage' | 'extendedKeyUsage' | 'hasNameConstraints' | 'unknownCritical'
>;

function factsOf(extensions: ReadonlyMap<string, Extension>): Facts {
  const usage = extensions.get(OIDS.keyUsage);
  const extended = extensions.get(OIDS.extendedKeyUsage);
  return {
    ...basicConstraintsOf(extensions.get(OIDS.basicConstraints)),
    keyUsage: usage === undefined ? undefined : readNamedBits(readElement(usage.value)),
    extendedKeyUsage:
      extended === undefined
        ? undefined
        : readChildren(readElement(extended.value), TAGS.sequence).map(readObjectIdentifier),
    hasNameConstraints: extensions.has(OIDS.nameConstraints),
    unknownCritical: [...extensions].flatMap(([oid, { critical }]) =>
      critical && !known.has(oid) ? [oid] : [],
    ),
  };
}

function basicConstraintsOf(extension: Extension | undefined): Pick<Facts, 'isAuthority' | 'pathLength'> {
  if (extension === undefined) return { isAuthority: false, pathLength: undefined };
  const parts = [...readChildren(readElement(extension.value), TAGS.sequence)];
  const isAuthority = parts[0]?.tag === TAGS.boolean && readBoolean(parts.shift() as DerElement);
  const [length, ...more] = parts;
  if (more.length > 0) throw new DerError('basic constraints');
  return { isAuthority, pathLength: length === undefined ? undefined : readSmallInteger(length) };
}
