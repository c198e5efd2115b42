import {
  type DerNode,
  derBytes,
  derChildren,
  derContent,
  derInner,
  derSequence,
  readDer,
} from '../encoding/der.ts';
import { encodeHex } from '../encoding/hex.ts';
import type { Certificate } from './certificate.ts';
import { EXTENSION, findExtension, nameAttributes, subjectAltNames } from './extensions.ts';

/** Identifier octets of GeneralName. */
const NAME = { email: 0x81, dns: 0x82, directory: 0xa4, uri: 0x86, address: 0x87 } as const;

const EMAIL_ATTRIBUTE = '1.2.840.113549.1.9.1';

/**
 * Most comparisons of names with constraints that one authority may cause: certificates of 16 KiB can hold thousands of
 * both, which would take minutes.
 */
const MAX_COMPARISONS = 16_384;

/** A GeneralName, read once for all its comparisons. */
interface ComparedName {
  readonly tag: number;
  readonly content: Uint8Array;
  /** Latin-1, in lower case. */
  readonly text: string;
  /** Relative names of a directory name, in the form that they are compared in. */
  readonly parts: readonly string[];
}

type Fits = (name: ComparedName, base: ComparedName) => boolean;

/** Encodings of the string types of attributes (RFC 5280 appendix A.1), by identifier octet. */
const ENCODINGS: ReadonlyMap<number, string> = new Map([
  [0x0c, 'utf-8'],
  [0x13, 'latin1'],
  [0x14, 'latin1'],
  [0x16, 'latin1'],
  [0x1e, 'utf-16be'],
]);

/** A value of an attribute: text apart from its type, case and inner space (RFC 5280 section 7.1), anything else as DER. */
function comparedValue(value: DerNode): string {
  const encoding = ENCODINGS.get(value.tag);
  if (encoding === undefined) return `#${encodeHex(derBytes(value))}`;
  const text = new TextDecoder(encoding).decode(derContent(value));
  return `"${text.normalize('NFKC').toLowerCase().trim().replaceAll(/\s+/g, ' ')}`;
}

/** A relative name: a set of attributes. */
function comparedPart(attributes: ReturnType<typeof nameAttributes>[number]): string {
  return JSON.stringify(attributes.map(({ oid, value }) => [oid, comparedValue(value)]).sort());
}

function comparedName(node: DerNode): ComparedName {
  const content = derContent(node);
  return {
    tag: node.tag,
    content,
    text: Buffer.from(content).toString('latin1').toLowerCase(),
    parts: node.tag === NAME.directory ? nameAttributes(derInner(node)).map(comparedPart) : [],
  };
}

/** A host below a domain; the base itself counts, and with a leading dot only what is below it does. */
function isHostWithin(host: string, base: string): boolean {
  if (base === '') return true;
  return base.startsWith('.') ? host.endsWith(base) : host === base || host.endsWith(`.${base}`);
}

function isEmailWithin({ text: address }: ComparedName, { text: limit }: ComparedName): boolean {
  const host = address.slice(address.lastIndexOf('@') + 1);
  if (limit.includes('@')) return address === limit;
  return limit.startsWith('.') ? host.endsWith(limit) : host === limit;
}

/** The host of a URI; undefined when it has none, or an address: such a URI honours no constraint. */
function hostOf(uri: string): string | undefined {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:[\]]+)(?::[0-9]*)?(?:[/?#]|$)/.exec(
    uri,
  )?.[1];
  return authority === undefined || /^[0-9.]+$/.test(authority) ? undefined : authority;
}

function isUriWithin({ text: uri }: ComparedName, { text: limit }: ComparedName): boolean {
  const host = hostOf(uri);
  if (host === undefined) return false;
  return limit.startsWith('.') ? host.endsWith(limit) : host === limit;
}

function isAddressWithin({ content: address }: ComparedName, { content: range }: ComparedName): boolean {
  if (range.length !== address.length * 2) return false;
  return address.every((byte, at) => {
    const mask = range[address.length + at] ?? 0;
    return (byte & mask) === ((range[at] ?? 0) & mask);
  });
}

function isNameWithin({ parts }: ComparedName, { parts: limits }: ComparedName): boolean {
  return limits.every((limit, at) => parts[at] === limit);
}

const FITS: ReadonlyMap<number, Fits> = new Map<number, Fits>([
  [NAME.email, isEmailWithin],
  [NAME.dns, (name, base) => isHostWithin(name.text, base.text)],
  [NAME.directory, isNameWithin],
  [NAME.uri, isUriWithin],
  [NAME.address, isAddressWithin],
]);

interface NameConstraints {
  readonly permitted: readonly ComparedName[];
  readonly excluded: readonly ComparedName[];
}

/** Bases of subtrees; minimum and maximum are refused, as is a kind of name that cannot be compared. */
function readSubtrees(node: DerNode | undefined): readonly ComparedName[] | undefined {
  if (node === undefined) return [];
  const bases: ComparedName[] = [];
  for (const subtree of derChildren(node)) {
    const [base, ...more] = derSequence(subtree);
    if (base === undefined || more.length > 0 || !FITS.has(base.tag)) return undefined;
    bases.push(comparedName(base));
  }
  return bases.length === 0 ? undefined : bases;
}

/** Constraints of a certificate; `unsupported` when not all of them can be honoured. */
function constraintsOf(certificate: Certificate): NameConstraints | 'unsupported' | undefined {
  const node = findExtension(certificate, EXTENSION.nameConstraints);
  if (node === undefined) return undefined;
  const members = derSequence(node);
  const [permittedNode, excludedNode] = [0xa0, 0xa1].map((tag) =>
    members.find((member) => member.tag === tag),
  );
  const known = [permittedNode, excludedNode].filter((member) => member !== undefined);
  if (known.length === 0 || known.length !== members.length) return 'unsupported';
  const [permitted, excluded] = [readSubtrees(permittedNode), readSubtrees(excludedNode)];
  return permitted === undefined || excluded === undefined ? 'unsupported' : { permitted, excluded };
}

/** A name as DER of the GeneralName that has the same form. */
function asGeneralName(tag: number, content: Uint8Array): DerNode {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return readDer(Uint8Array.of(tag, ...size, ...content));
}

/** All names of a certificate: its subject, alternative names, and e-mail addresses inside of the subject. */
function namesOf(certificate: Certificate): readonly ComparedName[] {
  const subject = readDer(certificate.subject);
  const emails = nameAttributes(subject)
    .flat()
    .filter(({ oid }) => oid === EMAIL_ATTRIBUTE)
    .map(({ value }) => asGeneralName(NAME.email, derContent(value)));
  const own = derContent(subject).length === 0 ? [] : [asGeneralName(NAME.directory, certificate.subject)];
  return [...own, ...emails, ...subjectAltNames(certificate)].map(comparedName);
}

function isAllowed(name: ComparedName, { permitted, excluded }: NameConstraints): boolean {
  const fits = FITS.get(name.tag);
  // Constraints of kinds that cannot be compared were refused, so no constraint can be of this kind.
  if (fits === undefined) return true;
  const isConstrained = [...permitted, ...excluded].some((base) => base.tag === name.tag);
  if (isConstrained && name.tag === NAME.uri && hostOf(name.text) === undefined) return false;
  if (excluded.some((base) => base.tag === name.tag && fits(name, base))) return false;
  const limits = permitted.filter((base) => base.tag === name.tag);
  return limits.length === 0 || limits.some((base) => fits(name, base));
}

/**
 * Whether the names of certificates honour the constraints of an authority above them (RFC 5280 section 4.2.1.10):
 * e-mail addresses, hosts, URIs, addresses and directory names. Constraints of another kind are never honoured, nor those
 * that need more than 16,384 comparisons.
 * @param below certificates whose names count: the leaf, and intermediate ones that are not self-issued
 * @throws AppError invalid DER_MALFORMED, CERT_MALFORMED
 */
export function honoursNameConstraints(authority: Certificate, below: readonly Certificate[]): boolean {
  const constraints = constraintsOf(authority);
  if (constraints === undefined) return true;
  if (constraints === 'unsupported') return false;
  const { permitted, excluded } = constraints;
  const names = below.flatMap(namesOf);
  const comparisons = names.length * (permitted.length + excluded.length);
  return comparisons <= MAX_COMPARISONS && names.every((name) => isAllowed(name, constraints));
}
