import {
  type DerNode,
  derBytes,
  derChildren,
  derContent,
  derInner,
  derSequence,
  readDer,
} from '../encoding/der.ts';
import { equalBytes } from '../encoding/text.ts';
import type { Certificate } from './certificate.ts';
import { EXTENSION, findExtension, nameAttributes, subjectAltNames } from './extensions.ts';

/** Identifier octets of GeneralName. */
const NAME = { email: 0x81, dns: 0x82, directory: 0xa4, uri: 0x86, address: 0x87 } as const;

const EMAIL_ATTRIBUTE = '1.2.840.113549.1.9.1';

type Fits = (name: DerNode, base: DerNode) => boolean;

function textOf(node: DerNode): string {
  return Buffer.from(derContent(node)).toString('latin1').toLowerCase();
}

/** A host below a domain; the base itself counts, and with a leading dot only what is below it does. */
function isHostWithin(host: string, base: string): boolean {
  if (base === '') return true;
  return base.startsWith('.') ? host.endsWith(base) : host === base || host.endsWith(`.${base}`);
}

function isEmailWithin(name: DerNode, base: DerNode): boolean {
  const [address, limit] = [textOf(name), textOf(base)];
  const host = address.slice(address.lastIndexOf('@') + 1);
  if (limit.includes('@')) return address === limit;
  return limit.startsWith('.') ? host.endsWith(limit) : host === limit;
}

/** The host of a URI; undefined when it has none, or an address: such a URI fits no constraint. */
function hostOf(uri: string): string | undefined {
  const authority = /^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#:[\]]+)(?::[0-9]*)?(?:[/?#]|$)/.exec(
    uri,
  )?.[1];
  return authority === undefined || /^[0-9.]+$/.test(authority) ? undefined : authority;
}

function isUriWithin(name: DerNode, base: DerNode): boolean {
  const host = hostOf(textOf(name));
  const limit = textOf(base);
  if (host === undefined) return false;
  return limit.startsWith('.') ? host.endsWith(limit) : host === limit;
}

function isAddressWithin(name: DerNode, base: DerNode): boolean {
  const [address, range] = [derContent(name), derContent(base)];
  if (range.length !== address.length * 2) return false;
  return address.every((byte, at) => {
    const mask = range[address.length + at] ?? 0;
    return (byte & mask) === ((range[at] ?? 0) & mask);
  });
}

function isNameWithin(name: DerNode, base: DerNode): boolean {
  const [parts, limits] = [derSequence(derInner(name)), derSequence(derInner(base))];
  return limits.every((limit, at) => {
    const part = parts[at];
    return part !== undefined && equalBytes(derBytes(part), derBytes(limit));
  });
}

const FITS: ReadonlyMap<number, Fits> = new Map<number, Fits>([
  [NAME.email, isEmailWithin],
  [NAME.dns, (name, base) => isHostWithin(textOf(name), textOf(base))],
  [NAME.directory, isNameWithin],
  [NAME.uri, isUriWithin],
  [NAME.address, isAddressWithin],
]);

interface NameConstraints {
  readonly permitted: readonly DerNode[];
  readonly excluded: readonly DerNode[];
}

/** Bases of subtrees; minimum and maximum are refused, as is a kind of name that cannot be compared. */
function readSubtrees(node: DerNode | undefined): readonly DerNode[] | undefined {
  if (node === undefined) return [];
  const bases: DerNode[] = [];
  for (const subtree of derChildren(node)) {
    const [base, ...more] = derSequence(subtree);
    if (base === undefined || more.length > 0 || !FITS.has(base.tag)) return undefined;
    bases.push(base);
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
function namesOf(certificate: Certificate): readonly DerNode[] {
  const subject = readDer(certificate.subject);
  const emails = nameAttributes(subject)
    .flat()
    .filter(({ oid }) => oid === EMAIL_ATTRIBUTE)
    .map(({ value }) => asGeneralName(NAME.email, derContent(value)));
  const own = derContent(subject).length === 0 ? [] : [asGeneralName(NAME.directory, certificate.subject)];
  return [...own, ...emails, ...subjectAltNames(certificate)];
}

function isAllowed(name: DerNode, { permitted, excluded }: NameConstraints): boolean {
  const fits = FITS.get(name.tag);
  // Constraints of kinds that cannot be compared were refused, so no constraint can be of this kind.
  if (fits === undefined) return true;
  if (excluded.some((base) => base.tag === name.tag && fits(name, base))) return false;
  const limits = permitted.filter((base) => base.tag === name.tag);
  return limits.length === 0 || limits.some((base) => fits(name, base));
}

/**
 * Whether the names of certificates honour the constraints of an authority above them (RFC 5280 section 4.2.1.10):
 * e-mail addresses, hosts, URIs, addresses and directory names. Constraints of another kind are never honoured.
 * @param below certificates whose names count: the leaf, and intermediate ones that are not self-issued
 * @throws AppError invalid DER_MALFORMED, CERT_MALFORMED
 */
export function honoursNameConstraints(authority: Certificate, below: readonly Certificate[]): boolean {
  const constraints = constraintsOf(authority);
  if (constraints === undefined) return true;
  if (constraints === 'unsupported') return false;
  return below.every((certificate) => namesOf(certificate).every((name) => isAllowed(name, constraints)));
}
