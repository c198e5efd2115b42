import { type Sha2, sha2Base64Url } from '../../crypto/hash.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { findEncodedJson } from '../jws.ts';
import { refusePresentation } from '../presentation.ts';

/** Deepest nesting of objects and arrays in the claims, disclosed values included; the claims themselves are level 1. */
const MAX_CLAIM_DEPTH = 16;

const DIGESTS = '_sd';
const SLOT = '...';
const HASH_NAME = '_sd_alg';

/** Hash names of `_sd_alg` (RFC 9901 section 4.1.1, IANA "Named Information Hash Algorithm") that are accepted. */
const HASHES: Readonly<Record<string, Sha2>> = {
  'sha-256': 'sha256',
  'sha-384': 'sha384',
  'sha-512': 'sha512',
};

interface Disclosure {
  /** Undefined for an element of an array. */
  readonly name: string | undefined;
  readonly value: unknown;
}

interface Revealing {
  /** By digest; deleted when it was used. */
  readonly disclosures: Map<string, Disclosure>;
  /** Every digest met so far, of decoys and withheld claims too. */
  readonly met: Set<string>;
}

function refuse(message: string): never {
  return refusePresentation('DIGEST', message);
}

/**
 * The hash function that a payload names; SHA-256 when it names none.
 * @throws AppError unprocessable DIGEST for an unknown one
 */
export function hashOfPayload(payload: JsonObject): Sha2 {
  if (!Object.hasOwn(payload, HASH_NAME)) return 'sha256';
  const name = payload[HASH_NAME];
  const hash = typeof name === 'string' && Object.hasOwn(HASHES, name) ? HASHES[name] : undefined;
  return hash ?? refuse('The hash algorithm of the disclosures is not supported');
}

function parseDisclosure(text: string): Disclosure {
  const items = findEncodedJson(text)?.value;
  if (!Array.isArray(items) || typeof items[0] !== 'string') refuse('A disclosure is malformed');
  if (items.length === 2) return { name: undefined, value: items[1] };
  if (items.length !== 3 || typeof items[1] !== 'string') refuse('A disclosure is malformed');
  const name: string = items[1];
  if (name === DIGESTS || name === SLOT) refuse('A disclosure uses a reserved claim name');
  return { name, value: items[2] };
}

/** The disclosure of a digest, once; undefined for a decoy and for what the holder withheld. */
function take(state: Revealing, digest: unknown): Disclosure | undefined {
  if (typeof digest !== 'string') refuse('A digest is no string');
  if (state.met.has(digest)) refuse('A digest occurs twice');
  state.met.add(digest);
  const found = state.disclosures.get(digest);
  state.disclosures.delete(digest);
  return found;
}

function revealItem(state: Revealing, item: unknown, depth: number): readonly unknown[] {
  if (!isJsonObject(item) || !Object.hasOwn(item, SLOT)) return [reveal(state, item, depth)];
  if (Object.keys(item).length !== 1) refuse('The place of an array element has other members');
  const disclosure = take(state, item[SLOT]);
  if (disclosure === undefined) return [];
  if (disclosure.name !== undefined) refuse('The disclosure of an array element has a claim name');
  return [reveal(state, disclosure.value, depth)];
}

function* revealDigests(
  state: Revealing,
  digests: unknown,
  depth: number,
): Generator<readonly [string, unknown]> {
  if (!Array.isArray(digests)) refuse('The digests of an object are no array');
  for (const digest of digests) {
    const disclosure = take(state, digest);
    if (disclosure === undefined) continue;
    if (disclosure.name === undefined) refuse('The disclosure of a claim has no name');
    if (disclosure.name === HASH_NAME && depth === 1) refuse('A disclosure uses a reserved claim name');
    yield [disclosure.name, reveal(state, disclosure.value, depth + 1)];
  }
}

function revealObject(state: Revealing, object: JsonObject, depth: number): JsonObject {
  if (Object.hasOwn(object, SLOT)) refuse('The place of an array element is outside of an array');
  const claims = new Map<string, unknown>();
  for (const [name, value] of Object.entries(object)) {
    if (name === DIGESTS || (name === HASH_NAME && depth === 1)) continue;
    claims.set(name, reveal(state, value, depth + 1));
  }
  if (Object.hasOwn(object, DIGESTS)) {
    for (const [name, value] of revealDigests(state, object[DIGESTS], depth)) {
      if (claims.has(name)) refuse('A disclosed claim exists already');
      claims.set(name, value);
    }
  }
  // Object.fromEntries defines members, so that a claim named __proto__ is a claim.
  return Object.fromEntries(claims);
}

function reveal(state: Revealing, value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > MAX_CLAIM_DEPTH) refuse(`Claims are nested deeper than ${MAX_CLAIM_DEPTH}`);
  if (Array.isArray(value)) return value.flatMap((item) => revealItem(state, item, depth + 1));
  return isJsonObject(value) ? revealObject(state, value, depth) : value;
}

/**
 * Puts the disclosed claims into a payload (RFC 9901 section 7.1 steps 3 to 5): the processed payload, without `_sd`,
 * `_sd_alg` and the places of withheld array elements.
 * @throws AppError unprocessable DIGEST for: a hash that is not supported, malformed and repeated disclosures, a digest
 * that occurs twice, a disclosure that no digest references, reserved or existing claim names, a claim where an array
 * element belongs and the reverse, nesting over MAX_CLAIM_DEPTH
 */
export function revealClaims(payload: JsonObject, disclosures: readonly string[]): JsonObject {
  const hash = hashOfPayload(payload);
  const state: Revealing = { disclosures: new Map(), met: new Set() };
  for (const text of disclosures) {
    const digest = sha2Base64Url(hash, text);
    if (state.disclosures.has(digest)) refuse('A disclosure is repeated');
    state.disclosures.set(digest, parseDisclosure(text));
  }
  const claims = revealObject(state, payload, 1);
  if (state.disclosures.size > 0) refuse('A disclosure is referenced by no digest');
  return claims;
}
