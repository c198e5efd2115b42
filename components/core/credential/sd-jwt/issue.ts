import { sha2Base64Url } from '../../crypto/hash.ts';
import type { RandomBytes } from '../../crypto/key-wrap.ts';
import { encodeBase64Url } from '../../encoding/base64.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { compareCodeUnits } from '../../encoding/text.ts';
import { REGISTERED_CLAIMS } from './registered-claims.ts';

/** Bytes of a salt and of a decoy: 128 and 256 bits (RFC 9901, sections 9.3 and 4.2.5). */
const saltBytes = 16;
const digestBytes = 32;
const mostDecoys = 4;
/** Drawn at once: the salts of ten claims with their decoys. */
const poolBytes = 320;

/** Claims that a verifier must always see (SD-JWT VC, section 2.2.2.2), and names that RFC 9901 uses itself. */
const RESERVED_CLAIMS: ReadonlySet<string> = new Set([...REGISTERED_CLAIMS, '_sd', '_sd_alg', '...']);

/** What is issued. */
interface SdJwtInput {
  /** Protected header of the JWS. */
  readonly header: JsonObject;
  /** Members that stay readable: `iss`, `vct`, `cnf` and the like. */
  readonly payload: JsonObject;
  /** Claims about the subject. */
  readonly claims: JsonObject;
  /** JSON Pointers of the claims that the holder may hold back; all of the top level when undefined. */
  readonly disclosable: readonly string[] | undefined;
}

/** An SD-JWT before its signature. */
interface UnsignedSdJwt {
  /** The bytes that the issuer signs, as ASCII: encoded header, dot, encoded payload. */
  readonly signingInput: string;
  readonly disclosures: readonly string[];
}

/**
 * Builds an SD-JWT (RFC 9901, section 6.1): every disclosable claim becomes a salted digest on its level, with up to
 * four decoys a level, so that the number of digests does not tell the number of claims.
 *
 * @param random source of salts and decoys
 * @throws RangeError for a pointer that names nothing
 */
export function prepareSdJwt(input: SdJwtInput, random: RandomBytes): UnsignedSdJwt {
  const { header, payload, claims } = input;
  const paths = new Set(input.disclosable ?? Object.keys(claims).map((name) => `/${escapeSegment(name)}`));
  const concealing: Concealing = { paths, random: pooled(random), disclosures: [], met: new Set() };
  const concealed = concealObject(claims, '', concealing);
  const absent = [...paths].find((path) => !concealing.met.has(path));
  if (absent !== undefined) throw new RangeError(`no claim is at ${absent}`);
  const algorithm = concealing.disclosures.length === 0 ? {} : { _sd_alg: 'sha-256' };
  const body = { ...payload, ...concealed, ...algorithm };
  return {
    signingInput: `${encoded(header)}.${encoded(body)}`,
    disclosures: concealing.disclosures,
  };
}

/** A call for random bytes costs as much as a disclosure, so they are drawn for several at once; none is used twice. */
function pooled(random: RandomBytes): RandomBytes {
  let pool: Uint8Array = new Uint8Array();
  return (size) => {
    if (pool.length < size) pool = random(Math.max(size, poolBytes));
    const taken = pool.subarray(0, size);
    pool = pool.subarray(size);
    return taken;
  };
}

/** The compact form: JWS, then each disclosure, each followed by `~` (RFC 9901, section 4). */
export function compactSdJwt({ signingInput, disclosures }: UnsignedSdJwt, signature: Uint8Array): string {
  return [`${signingInput}.${encodeBase64Url(signature)}`, ...disclosures, ''].join('~');
}

/** Why claims or paths cannot be issued; undefined when they can. */
export function faultOfClaims(
  claims: JsonObject,
  disclosable: readonly string[] | undefined,
): string | undefined {
  const reserved = Object.keys(claims).find((name) => RESERVED_CLAIMS.has(name));
  if (reserved !== undefined) return `the claim ${reserved} is set by the issuer`;
  if (hasReservedName(claims)) return 'a claim is named _sd or ...';
  const absent = disclosable?.find((path) => !pointsAt(claims, path));
  return absent === undefined ? undefined : `no claim is at ${absent}`;
}

/** The JSON Pointer of a disclosable path: a name of the top level, or a pointer already. */
export function pointerOf(path: string): string {
  return path.startsWith('/') ? path : `/${escapeSegment(path)}`;
}

interface Concealing {
  readonly paths: ReadonlySet<string>;
  readonly random: RandomBytes;
  readonly disclosures: string[];
  readonly met: Set<string>;
}

function conceal(value: unknown, path: string, concealing: Concealing): unknown {
  if (Array.isArray(value)) return concealElements(value, path, concealing);
  return isJsonObject(value) ? concealObject(value, path, concealing) : value;
}

function concealObject(object: JsonObject, path: string, concealing: Concealing): JsonObject {
  const kept: [string, unknown][] = [];
  const digests: string[] = [];
  for (const [name, value] of Object.entries(object)) {
    const at = `${path}/${escapeSegment(name)}`;
    const inner = conceal(value, at, concealing);
    if (concealing.paths.has(at)) digests.push(disclose([name, inner], at, concealing));
    else kept.push([name, inner]);
  }
  if (digests.length === 0) return Object.fromEntries(kept);
  digests.push(...decoys(concealing.random));
  // Sorted, so that their order does not tell that of the claims.
  return Object.fromEntries([...kept, ['_sd', digests.sort(compareCodeUnits)]]);
}

function concealElements(elements: readonly unknown[], path: string, concealing: Concealing): unknown[] {
  return elements.map((element, index) => {
    const at = `${path}/${index}`;
    const inner = conceal(element, at, concealing);
    return concealing.paths.has(at) ? { '...': disclose([inner], at, concealing) } : inner;
  });
}

/** Adds a disclosure, `[salt, name, value]` or `[salt, value]`, and returns its digest. */
function disclose(content: readonly unknown[], at: string, concealing: Concealing): string {
  const salt = encodeBase64Url(concealing.random(saltBytes));
  const disclosure = encoded([salt, ...content]);
  concealing.disclosures.push(disclosure);
  concealing.met.add(at);
  return sha2Base64Url('sha256', disclosure);
}

function decoys(random: RandomBytes): string[] {
  const [byte = 0] = random(1);
  const count = byte % (mostDecoys + 1);
  return Array.from({ length: count }, () => encodeBase64Url(random(digestBytes)));
}

function hasReservedName(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasReservedName);
  if (!isJsonObject(value)) return false;
  return Object.entries(value).some(
    ([name, inner]) => name === '_sd' || name === '...' || hasReservedName(inner),
  );
}

function pointsAt(value: unknown, path: string): boolean {
  if (path === '') return false;
  let found = value;
  for (const segment of path.split('/').slice(1)) {
    const name = segment.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return false;
    if (Array.isArray(found) && name === 'length') return false;
    found = Reflect.get(found, name);
  }
  return true;
}

/** RFC 6901, section 3. */
function escapeSegment(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function encoded(value: unknown): string {
  return encodeBase64Url(Buffer.from(JSON.stringify(value), 'utf8'));
}
