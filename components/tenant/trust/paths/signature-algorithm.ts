import {
  type DerElement,
  DerError,
  readChildren,
  readElement,
  readObjectIdentifier,
  readSmallInteger,
  TAGS,
} from './der.ts';

const NULL_TAG = 0x05;
const PSS = '1.2.840.113549.1.1.10';
const MGF1 = '1.2.840.113549.1.1.8';

/** ECDSA with SHA-256, 384 and 512 (RFC 5758), which have no parameters. */
const ECDSA: ReadonlySet<string> = new Set(['2', '3', '4'].map((hash) => `1.2.840.10045.4.3.${hash}`));
/** RSA with SHA-256, 384 and 512 in the padding of PKCS #1 (RFC 4055). */
const RSA: ReadonlySet<string> = new Set(['11', '12', '13'].map((hash) => `1.2.840.113549.1.1.${hash}`));
/** SHA-256, 384 and 512, with their bytes. */
const HASH_BYTES: ReadonlyMap<string, number> = new Map([
  ['2.16.840.1.101.3.4.2.1', 32],
  ['2.16.840.1.101.3.4.2.2', 48],
  ['2.16.840.1.101.3.4.2.3', 64],
]);

interface Algorithm {
  readonly oid: string;
  readonly parameters: DerElement | undefined;
}

/**
 * Whether an algorithm may sign certificates: ECDSA or RSA with SHA-256 or better; RSASSA-PSS with MGF1 of the same hash
 * and a salt of its length (RFC 4055, section 3.1).
 * @param der the AlgorithmIdentifier
 */
export function isAcceptedAlgorithm(der: Uint8Array): boolean {
  try {
    const { oid, parameters } = algorithmOf(readElement(der));
    if (ECDSA.has(oid)) return parameters === undefined;
    if (RSA.has(oid)) return isAbsentOrNull(parameters);
    return oid === PSS && parameters !== undefined && isAcceptedPss(parameters);
  } catch (error) {
    if (error instanceof DerError) return false;
    throw error;
  }
}

function algorithmOf(element: DerElement): Algorithm {
  const [id, parameters, ...more] = readChildren(element, TAGS.sequence);
  if (id === undefined || more.length > 0) throw new DerError('algorithm');
  return { oid: readObjectIdentifier(id), parameters };
}

function isAcceptedPss(parameters: DerElement): boolean {
  const [hash, mask, salt, ...more] = readChildren(parameters, TAGS.sequence);
  if (hash === undefined || mask === undefined || salt === undefined || more.length > 0) return false;
  const digest = algorithmOf(only(hash, 0xa0));
  const generator = algorithmOf(only(mask, 0xa1));
  if (generator.oid !== MGF1 || generator.parameters === undefined) return false;
  const inner = algorithmOf(generator.parameters);
  const areSame =
    digest.oid === inner.oid && isAbsentOrNull(digest.parameters) && isAbsentOrNull(inner.parameters);
  return areSame && readSmallInteger(only(salt, 0xa2)) === HASH_BYTES.get(digest.oid);
}

function only(element: DerElement, tag: number): DerElement {
  const [child, ...more] = readChildren(element, tag);
  if (child === undefined || more.length > 0) throw new DerError('explicit tag');
  return child;
}

function isAbsentOrNull(parameters: DerElement | undefined): boolean {
  return parameters === undefined || (parameters.tag === NULL_TAG && parameters.content.length === 0);
}
