import {
  DER,
  type DerNode,
  derBits,
  derBoolean,
  derChildren,
  derContent,
  derCount,
  derOid,
  derSequence,
  readDer,
} from '../encoding/der.ts';
import { AppError } from '../errors/errors.ts';
import type { Certificate } from './certificate.ts';

/** Object identifiers of extensions (RFC 5280 section 4.2). */
export const EXTENSION = {
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  crlDistributionPoints: '2.5.29.31',
  certificatePolicies: '2.5.29.32',
  authorityKeyIdentifier: '2.5.29.35',
  extendedKeyUsage: '2.5.29.37',
} as const;

/** Bits of key usage (RFC 5280 section 4.2.1.3). */
export const KEY_USAGE = { digitalSignature: 0, keyCertSign: 5, crlSign: 6 } as const;

const ANY_USAGE = '2.5.29.37.0';
/** `[0]` of AuthorityKeyIdentifier. */
const KEY_IDENTIFIER = 0x80;

/** Who may issue certificates, and how many levels below. */
interface BasicConstraints {
  readonly isAuthority: boolean;
  /** Most intermediate certificates below; undefined for any number. */
  readonly pathLength: number | undefined;
}

function refuse(message: string): never {
  throw new AppError('invalid', 'CERT_MALFORMED', `Certificate: ${message}`);
}

/** The value of an extension; undefined when there is none. Malformed DER throws invalid DER_MALFORMED. */
export function findExtension(
  { extensions }: Pick<Certificate, 'extensions'>,
  oid: string,
): DerNode | undefined {
  const found = extensions.get(oid);
  return found === undefined ? undefined : readDer(found.value);
}

/** Basic constraints; no authority when the extension is absent (RFC 5280 section 4.2.1.9). */
export function basicConstraintsOf(certificate: Certificate): BasicConstraints {
  const node = findExtension(certificate, EXTENSION.basicConstraints);
  if (node === undefined) return { isAuthority: false, pathLength: undefined };
  const members = [...derSequence(node)];
  const isAuthority = members[0]?.tag === DER.boolean && derBoolean(members.shift());
  const pathLength = members.length > 0 ? derCount(members.shift()) : undefined;
  if (members.length > 0) refuse('basic constraints have other members');
  if (pathLength !== undefined && !isAuthority) refuse('a path length belongs to an authority');
  return { isAuthority, pathLength };
}

/** Whether a usage of the key is allowed; so it is when the extension is absent. */
export function allowsKeyUsage(certificate: Certificate, bit: number): boolean {
  const node = findExtension(certificate, EXTENSION.keyUsage);
  if (node === undefined) return true;
  const { bytes } = derBits(node);
  return ((bytes[bit >> 3] ?? 0) & (0x80 >> (bit & 7))) !== 0;
}

/** Whether the extended key usage names a purpose, or any purpose; undefined when the extension is absent. */
export function namesPurpose(certificate: Certificate, purpose: string): boolean | undefined {
  const node = findExtension(certificate, EXTENSION.extendedKeyUsage);
  if (node === undefined) return undefined;
  const purposes = derSequence(node).map(derOid);
  if (purposes.length === 0) refuse('there are no purposes in their place');
  return purposes.includes(purpose) || purposes.includes(ANY_USAGE);
}

/** The key identifier of a certificate's authority (RFC 5280 section 4.2.1.1); undefined where the certificate names none. */
export function authorityKeyId(certificate: Certificate): Uint8Array | undefined {
  const node = findExtension(certificate, EXTENSION.authorityKeyIdentifier);
  const [first] = node === undefined ? [] : derSequence(node);
  return first?.tag === KEY_IDENTIFIER ? derContent(first) : undefined;
}

/** A GeneralName: its identifier octet, which says of what kind it is, and its value (RFC 5280 section 4.2.1.6). */
export function subjectAltNames(certificate: Certificate): readonly DerNode[] {
  const node = findExtension(certificate, EXTENSION.subjectAltName);
  if (node === undefined) return [];
  const names = derSequence(node);
  if (names.length === 0) refuse('there are no alternative names in their place');
  return names;
}

/** Attributes of a name in DER, in their order: the object identifier and the value of each. */
export function nameAttributes(
  name: DerNode,
): readonly (readonly { readonly oid: string; readonly value: DerNode }[])[] {
  return derSequence(name).map((set) => {
    if (set.tag !== DER.set) refuse('a relative name is no set');
    return derChildren(set).map((attribute) => {
      const [oid, value, ...more] = derSequence(attribute);
      if (value === undefined || more.length > 0) refuse('an attribute of a name is malformed');
      return { oid: derOid(oid), value };
    });
  });
}
