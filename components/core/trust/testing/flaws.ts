import {
  ALGORITHM,
  addressName,
  altNames,
  basicConstraints,
  type ChainChanges,
  chainTimeMs,
  dayMs,
  directoryName,
  dnsName,
  emailName,
  extension,
  keyUsage,
  nameConstraints,
  purposes,
  type TestKey,
  uriName,
} from './chains.ts';
import { der, distinguishedName } from './der-writer.ts';

export const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

/** One flaw, or none, in a chain of a given number of certificates. */
export interface FlawedChain {
  readonly name: string;
  readonly levels: number;
  readonly changes: ChainChanges;
  /** The key of a level, where it is not the standard one. */
  readonly key?: { readonly level: number; readonly key: TestKey } | undefined;
  /** Levels that are left out of the path. */
  readonly without?: readonly number[];
}

/** Keys that flaws need. */
export interface FlawKeys {
  readonly other: TestKey;
  readonly rsa: TestKey;
  readonly weak: TestKey;
  readonly p384: TestKey;
}

const authority = [basicConstraints(true), keyUsage(5, 6)];
const leaf = [basicConstraints(false), keyUsage(0)];

const duplicate = [basicConstraints(true), basicConstraints(true), keyUsage(5, 6)];
const unknown = extension('1.3.6.1.4.1.99999.7', Buffer.from([0x05, 0x00]), true);
const malformedUsage = extension('2.5.29.15', Buffer.from([0x03, 0x01]), true);
const spoil = (signature: Buffer): Buffer => {
  const changed = Buffer.from(signature);
  const at = changed.length - 2;
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
};

/** Names of a leaf, and constraints that they break. */
const CONSTRAINTS: readonly (readonly [string, readonly Buffer[], Buffer])[] = [
  [
    'host not permitted',
    [dnsName('a.example.org')],
    nameConstraints({ permitted: [dnsName('example.com')] }),
  ],
  ['host excluded', [dnsName('a.example.com')], nameConstraints({ excluded: [dnsName('example.com')] })],
  [
    'host looks permitted',
    [dnsName('badexample.com')],
    nameConstraints({ permitted: [dnsName('example.com')] }),
  ],
  [
    'one of two hosts',
    [dnsName('a.example.com'), dnsName('b.example.org')],
    nameConstraints({ permitted: [dnsName('example.com')] }),
  ],
  [
    'address',
    [addressName(10, 0, 1, 7)],
    nameConstraints({ permitted: [addressName(10, 0, 0, 0, 255, 255, 255, 0)] }),
  ],
  [
    'address excluded',
    [addressName(10, 0, 0, 7)],
    nameConstraints({ excluded: [addressName(10, 0, 0, 0, 255, 255, 255, 0)] }),
  ],
  ['e-mail', [emailName('a@example.org')], nameConstraints({ permitted: [emailName('example.com')] })],
  [
    'e-mail of a host below',
    [emailName('a@b.example.com')],
    nameConstraints({ permitted: [emailName('example.com')] }),
  ],
  [
    'e-mail excluded',
    [emailName('a@example.com')],
    nameConstraints({ excluded: [emailName('a@example.com')] }),
  ],
  ['URI', [uriName('https://a.example.org/x')], nameConstraints({ permitted: [uriName('.example.com')] })],
  [
    'URI excluded',
    [uriName('https://example.com/x')],
    nameConstraints({ excluded: [uriName('example.com')] }),
  ],
  [
    'excluded URI without a host',
    [uriName('did:x:y')],
    nameConstraints({ excluded: [uriName('example.com')] }),
  ],
  ['subject', [dnsName('a.example.com')], nameConstraints({ permitted: [directoryName('another name')] })],
];

/** Names of a leaf that honour the constraints. */
const HONOURED: readonly (readonly [string, readonly Buffer[], Buffer])[] = [
  [
    'host',
    [dnsName('a.b.example.com'), dnsName('example.com')],
    nameConstraints({ permitted: [dnsName('example.com')] }),
  ],
  [
    'address',
    [addressName(10, 0, 0, 7)],
    nameConstraints({ permitted: [addressName(10, 0, 0, 0, 255, 255, 255, 0)] }),
  ],
  ['e-mail', [emailName('a@example.com')], nameConstraints({ permitted: [emailName('example.com')] })],
  ['URI', [uriName('https://a.example.com/x')], nameConstraints({ permitted: [uriName('.example.com')] })],
  ['other kind', [emailName('a@example.org')], nameConstraints({ permitted: [dnsName('example.com')] })],
  ['not excluded', [dnsName('example.org')], nameConstraints({ excluded: [dnsName('example.com')] })],
];

function constrained(at: number, names: readonly Buffer[], constraints: Buffer): ChainChanges {
  return {
    0: { extensions: [...leaf, altNames(...names)] },
    [at]: { extensions: [...authority, constraints] },
  };
}

/** Flaws of a certificate at any level. */
function* anywhere(levels: number, level: number, keys: FlawKeys): Generator<FlawedChain> {
  const own = level === 0 ? leaf : authority;
  const place = `level ${level} of ${levels}`;
  const change = (what: string, changed: ChainChanges[number]): FlawedChain => ({
    name: `${what}, ${place}`,
    levels,
    changes: { [level]: changed ?? {} },
  });
  yield change('expired', { notAfterMs: chainTimeMs - dayMs });
  yield change('not valid yet', { notBeforeMs: chainTimeMs + dayMs });
  yield change('unknown critical extension', { extensions: [...own, unknown] });
  yield { ...change('short RSA key', {}), key: { level, key: keys.weak } };
  if (level === levels - 1) return;
  yield change('spoilt signature', { spoil });
  yield change('signed by another key', { signer: keys.other });
  yield change('another issuer', { issuer: distinguishedName('another name') });
  yield change('SHA-1', { algorithm: ALGORITHM.ecdsaSha1 });
  yield change('two algorithms', { outer: ALGORITHM.ecdsaSha384 });
}

/** Flaws of an issuer. */
function* issuers(levels: number, level: number): Generator<FlawedChain> {
  const place = `level ${level} of ${levels}`;
  const change = (what: string, ...extensions: readonly Buffer[]): FlawedChain => ({
    name: `${what}, ${place}`,
    levels,
    changes: { [level]: { extensions } },
  });
  yield change('no authority', basicConstraints(false), keyUsage(5, 6));
  yield change('signs no certificates', basicConstraints(true), keyUsage(0, 6));
  yield change('for another purpose', ...authority, purposes(SERVER_AUTH));
  yield change('duplicate basic constraints', ...duplicate);
  yield change('malformed key usage', basicConstraints(true), malformedUsage);
  // openssl takes a self-signed certificate without constraints for an authority of the first version's time
  if (level < levels - 1) {
    yield change('no basic constraints', keyUsage(5, 6));
    yield {
      name: `first version, ${place}`,
      levels,
      changes: { [level]: { version: undefined, extensions: [] } },
    };
    yield { name: `left out, ${place}`, levels, changes: {}, without: [level] };
  }
  for (let length = 0; length < level - 1; length += 1) {
    yield change(`path length ${length}`, basicConstraints(true, length), keyUsage(5, 6));
  }
}

/** Chains with one flaw each. */
export function* flawedChains(keys: FlawKeys): Generator<FlawedChain> {
  for (const levels of [2, 3, 4, 5]) {
    for (let level = 0; level < levels; level += 1) yield* anywhere(levels, level, keys);
    for (let level = 1; level < levels; level += 1) yield* issuers(levels, level);
    const change = (what: string, ...extensions: readonly Buffer[]): FlawedChain => ({
      name: `${what}, leaf of ${levels}`,
      levels,
      changes: { 0: { extensions } },
    });
    yield change('signs nothing', basicConstraints(false), keyUsage(2));
    yield change('for another purpose', ...leaf, purposes(SERVER_AUTH));
    yield change('malformed key usage', basicConstraints(false), malformedUsage);
    for (const [what, names, constraints] of CONSTRAINTS) {
      for (const at of new Set([1, levels - 1])) {
        const changes = constrained(at, names, constraints);
        yield { name: `${what} constrained at ${at} of ${levels}`, levels, changes };
      }
    }
  }
}

/** Chains without a flaw. */
export function* soundChains({ rsa, p384 }: FlawKeys): Generator<FlawedChain> {
  for (const levels of [2, 3, 4, 5]) {
    yield { name: `sound, ${levels}`, levels, changes: {} };
    yield { name: `P-384 leaf, ${levels}`, levels, changes: {}, key: { level: 0, key: p384 } };
    yield { name: `RSA leaf, ${levels}`, levels, changes: {}, key: { level: 0, key: rsa } };
    yield { name: `P-384 issuer, ${levels}`, levels, changes: {}, key: { level: 1, key: p384 } };
    yield { name: `RSA issuer, ${levels}`, levels, changes: {}, key: { level: 1, key: rsa } };
    const isAnchor = levels === 2;
    const pss = { algorithm: ALGORITHM.rsaPss };
    yield {
      name: `RSA-PSS, ${levels}`,
      levels,
      changes: { 0: pss, ...(isAnchor ? { 1: pss } : {}) },
      key: { level: 1, key: rsa },
    };
    yield { name: `SHA-384, ${levels}`, levels, changes: { 0: { algorithm: ALGORITHM.ecdsaSha384 } } };
    yield {
      name: `purpose, ${levels}`,
      levels,
      changes: { 0: { extensions: [...leaf, purposes(CLIENT_AUTH)] } },
    };
    yield { name: `no usage, ${levels}`, levels, changes: { 0: { extensions: [] } } };
    const length = { extensions: [basicConstraints(true, levels - 2), keyUsage(5)] };
    yield { name: `path length, ${levels}`, levels, changes: { [levels - 1]: length } };
    const odd = extension('1.3.6.1.4.1.99999.7', der(0x05));
    yield { name: `unknown extension, ${levels}`, levels, changes: { 0: { extensions: [...leaf, odd] } } };
    for (const [what, names, constraints] of HONOURED) {
      const changes = constrained(levels - 1, names, constraints);
      yield { name: `${what} honoured, ${levels}`, levels, changes };
    }
  }
}
