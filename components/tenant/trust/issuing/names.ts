import 'reflect-metadata';
import { type JsonNameParams, Name, X509Certificate } from '@peculiar/x509';
import { isReadableLine } from '#core/encoding/readable.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';

/** Object identifiers and upper bounds in characters of the attributes of names (RFC 5280, appendix A.1; EN 319 412-1). */
const ATTRIBUTES: Readonly<Record<string, { readonly oid: string; readonly most: number }>> = {
  CN: { oid: '2.5.4.3', most: 64 },
  O: { oid: '2.5.4.10', most: 64 },
  OU: { oid: '2.5.4.11', most: 64 },
  L: { oid: '2.5.4.7', most: 128 },
  ST: { oid: '2.5.4.8', most: 128 },
  STREET: { oid: '2.5.4.9', most: 128 },
  C: { oid: '2.5.4.6', most: 2 },
  SERIALNUMBER: { oid: '2.5.4.5', most: 64 },
  ORGANIZATIONIDENTIFIER: { oid: '2.5.4.97', most: 64 },
};

const most = 64;
const mostAttributes = 16;

/** `CN={name}, O={organisation}`; each shortened to the 64 characters that a name may have. */
export function organizationNameOf(commonName: string, organization: string): Name {
  return new Name([attributeOf('CN', shorten(commonName)), attributeOf('O', shorten(organization))]);
}

function shorten(text: string): string {
  return [...text].slice(0, most).join('');
}

/**
 * A name in text: `CN=Example, O=Example Ltd, C=DE`, in the order of its attributes, `\` before a comma that is part of a
 * value.
 * @throws AppError invalid INVALID_REQUEST for an unknown attribute, or a value that is empty or too long
 */
export function parseName(text: string): Name {
  const parts = text.match(/(?:\\.|[^,\\])+/gs) ?? [];
  if (parts.join(',') !== text || parts.length > mostAttributes)
    throw invalid('it is not TYPE=value, TYPE=value');
  return new Name(parts.map(parseAttribute));
}

function parseAttribute(part: string): JsonNameParams[number] {
  const [, type = '', escaped = ''] = /^\s*([A-Za-z]+)\s*=\s*(.*?)\s*$/s.exec(part) ?? [];
  const value = escaped.replaceAll(/\\(.)/gs, '$1');
  const attribute = ATTRIBUTES[type.toUpperCase()];
  if (attribute === undefined) throw invalid(`its attributes are ${Object.keys(ATTRIBUTES).join(', ')}`);
  const isShort = value !== '' && [...value].length <= attribute.most;
  if (!isShort || !isReadableLine(value))
    throw invalid(`${type} has 1 to ${attribute.most} characters that can be seen`);
  const isPrintable = /^[A-Za-z0-9 '()+,./:=?-]*$/.test(value);
  if (type.toUpperCase() === 'C' ? !/^[A-Za-z]{2}$/.test(value) : isBare(type) && !isPrintable)
    throw invalid(`${type} has letters and digits only`);
  return attributeOf(type.toUpperCase(), value);
}

/** Attributes whose type is PrintableString alone. */
const isBare = (type: string) => ['C', 'SERIALNUMBER'].includes(type.toUpperCase());

function attributeOf(type: string, value: string): JsonNameParams[number] {
  const oid = ATTRIBUTES[type]?.oid ?? '';
  return { [oid]: [isBare(type) ? { printableString: value } : { utf8String: value }] };
}

function invalid(reason: string): AppError {
  return new AppError('invalid', genericCode('invalid'), `subjectDn cannot be read: ${reason}.`);
}

/** The subject of a certificate in DER. */
export function nameOfSubject(der: Uint8Array): Name {
  return new X509Certificate(Buffer.from(der)).subjectName;
}
