import { generateKeyPairSync, type KeyObject, sign as signBytes } from 'node:crypto';
import { sha256 } from '../../../crypto/hash.ts';
import { findJwkKey, type SignatureKey } from '../../../crypto/signature-key.ts';
import { encodeBase64Url } from '../../../encoding/base64.ts';
import { isJsonObject, type JsonObject } from '../../../encoding/json.ts';
import { utf8 } from '../../../encoding/text.ts';
import type { SdJwtVcExpectation } from '../verify.ts';

/** A key pair of a test. */
export interface KeyPair {
  readonly privateKey: KeyObject;
  readonly jwk: JsonObject;
  readonly key: SignatureKey;
}

export function keyPair(namedCurve: 'P-256' | 'P-384' = 'P-256'): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve });
  const jwk = { ...publicKey.export({ format: 'jwk' }) };
  const key = findJwkKey(jwk);
  if (key === undefined) throw new Error('no key');
  return { privateKey, jwk, key };
}

/** The time of every test: 2025-06-01T12:00:00Z. */
export const testTimeMs = 1_748_779_200_000;
export const testSeconds = testTimeMs / 1000;
export const testVct = 'https://issuer.example/vct/permit';

export const encoded = (value: unknown): string => encodeBase64Url(utf8(JSON.stringify(value)));

export function signedJwt(header: JsonObject, payload: unknown, signer: KeyObject): string {
  const input = `${encoded(header)}.${encoded(payload)}`;
  const hash = signer.asymmetricKeyType === 'ed25519' ? null : 'sha256';
  const signature = signBytes(hash, utf8(input), { key: signer, dsaEncoding: 'ieee-p1363' });
  return `${input}.${encodeBase64Url(signature)}`;
}

export const digestOf = (disclosure: string): string => encodeBase64Url(sha256(disclosure));

/** A disclosure and its digest. */
export function disclosed(...items: readonly unknown[]): { readonly text: string; readonly digest: string } {
  const text = encoded(items);
  return { text, digest: digestOf(text) };
}

/** Makes every member and every array element selectively disclosable, at all levels. */
export function conceal(value: unknown, disclosures: string[]): unknown {
  const add = (...items: readonly unknown[]): string => {
    const { text, digest } = disclosed(`salt-${disclosures.length}`, ...items);
    disclosures.push(text);
    return digest;
  };
  if (Array.isArray(value)) return value.map((item) => ({ '...': add(conceal(item, disclosures)) }));
  if (!isJsonObject(value)) return value;
  const digests = Object.entries(value).map(([name, member]) => add(name, conceal(member, disclosures)));
  return digests.length === 0 ? {} : { _sd: digests.sort() };
}

/** What a test presents; each part can be replaced. */
export interface Presentation {
  readonly header: JsonObject;
  readonly payload: JsonObject;
  readonly disclosures: readonly string[];
  /** Undefined leaves the key binding out. */
  readonly bindingHeader: JsonObject | undefined;
  readonly binding: JsonObject;
  readonly signer: KeyObject;
  readonly holder: KeyObject;
}

/** An issuer, a holder and what a verifier expects of them. */
export interface Scene {
  readonly issuer: KeyPair;
  readonly holder: KeyPair;
  readonly expectation: SdJwtVcExpectation;
  /** What is presented where nothing is changed. */
  readonly header: JsonObject;
  readonly payload: JsonObject;
  present(change?: Partial<Presentation>): string;
}

export function scene(): Scene {
  const [issuer, holder] = [keyPair(), keyPair()];
  const name = disclosed('salt-a', 'given_name', 'Ada');
  const country = disclosed('salt-b', 'DE');
  const payload = {
    iss: 'https://issuer.example',
    vct: testVct,
    iat: testSeconds - 1000,
    exp: testSeconds + 1000,
    cnf: { jwk: holder.jwk },
    status: { status_list: { idx: 7, uri: 'https://issuer.example/lists/1' } },
    nationalities: [{ '...': country.digest }, 'FR'],
    _sd_alg: 'sha-256',
    _sd: [name.digest, digestOf('decoy')],
  };
  const standard: Presentation = {
    header: { alg: 'ES256', typ: 'dc+sd-jwt' },
    payload,
    disclosures: [name.text, country.text],
    bindingHeader: { alg: 'ES256', typ: 'kb+jwt' },
    binding: {},
    signer: issuer.privateKey,
    holder: holder.privateKey,
  };
  const present = (change: Partial<Presentation> = {}): string => {
    const made = { ...standard, ...change };
    const jwt = signedJwt(made.header, made.payload, made.signer);
    const bound = [jwt, ...made.disclosures, ''].join('~');
    if (made.bindingHeader === undefined) return bound;
    const binding = {
      nonce: 'n-0123456789',
      aud: 'x509_san_dns:verifier.example',
      iat: testSeconds,
      sd_hash: digestOf(bound),
    };
    return bound + signedJwt(made.bindingHeader, { ...binding, ...made.binding }, made.holder);
  };
  const expectation: SdJwtVcExpectation = {
    issuerKey: issuer.key,
    algorithms: ['ES256'],
    types: [testVct],
    keyBinding: {
      nonce: 'n-0123456789',
      audience: 'x509_san_dns:verifier.example',
      algorithms: ['ES256', 'EdDSA'],
    },
    atMs: testTimeMs,
  };
  return { issuer, holder, expectation, header: standard.header, payload, present };
}
