import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { isAppError } from '../errors/errors.ts';
import { type Certificate, parseCertificate } from './certificate.ts';
import { validatePath } from './path.ts';
import {
  altNames,
  basicConstraints,
  chain,
  chainDers,
  chainTimeMs,
  dayMs,
  directoryName,
  dnsName,
  ecKey,
  edKey,
  extension,
  keyUsage,
  nameConstraints,
  purposes,
  rsaKey,
  type TestChain,
  uriName,
} from './testing/chains.ts';
import { der, distinguishedName, oid, sequence } from './testing/der-writer.ts';
import { judgeX5c } from './x5c.ts';

// Thousands of judgements, on machines that do other work as well.
vi.setConfig({ testTimeout: 30_000 });

const keys = Array.from({ length: 7 }, () => ecKey('P-256'));
const three = keys.slice(0, 3);
const signer = '1.0.18013.5.1.2';

function codeOf({ path, anchor }: Pick<TestChain, 'path' | 'anchor'>, change: object = {}): string {
  const { violations } = validatePath({ path, anchors: [anchor], atMs: chainTimeMs, ...change });
  return violations[0]?.code ?? 'ok';
}

it('a path leads to its anchor', () => {
  const { path, anchor } = chain('sound', three);
  const { result } = validatePath({
    path,
    anchors: [chain('other', three).anchor, anchor],
    atMs: chainTimeMs,
  });
  expect(result?.anchor.thumbprint).toBe(anchor.thumbprint);
  expect(result?.leaf.thumbprint).toBe(path[0]?.thumbprint);
  expect(result?.leafKey.kind).toBe('P-256');
});

it('the order of x5c', () => {
  const { path, anchor } = chain('order', keys.slice(0, 4));
  const [leaf, lower, upper] = path;
  if (leaf === undefined || lower === undefined || upper === undefined) throw new Error('no path');
  const code = (...certificates: readonly Certificate[]) => codeOf({ path: certificates, anchor });
  expect(code(leaf, lower, upper)).toBe('ok');
  expect(code()).toBe('TRUST_CHAIN_INVALID');
  expect(code(leaf, upper, lower)).toBe('TRUST_CHAIN_INVALID');
  expect(code(lower, leaf, upper)).toBe('TRUST_CHAIN_INVALID');
  expect(code(leaf, lower, lower, upper)).toBe('TRUST_CHAIN_INVALID');
  expect(code(leaf, lower, upper, anchor)).toBe('TRUST_CHAIN_INVALID');
  expect(code(anchor)).toBe('TRUST_CHAIN_INVALID');
  expect(code(leaf, lower)).toBe('TRUST_ISSUER_NOT_LISTED');
  expect(code(leaf, upper)).toBe('TRUST_CHAIN_INVALID');
  expect(codeOf({ path: [leaf, lower, upper], anchor: chain('order', keys.slice(2, 6)).anchor })).toBe(
    'TRUST_ISSUER_NOT_LISTED',
  );
  // another root that is not the anchor, brought along
  const other = chain('another', three);
  expect(code(...other.path, other.anchor)).toBe('TRUST_CHAIN_INVALID');
});

it('five certificates at most', () => {
  expect(codeOf(chain('five', keys.slice(0, 6)))).toBe('ok');
  expect(codeOf(chain('six', keys))).toBe('TRUST_CHAIN_INVALID');
});

it('time decides, for the anchor too', () => {
  const { path, anchor } = chain('time', three, { 1: { notAfterMs: chainTimeMs } });
  expect(codeOf({ path, anchor })).toBe('ok');
  expect(codeOf({ path, anchor }, { atMs: chainTimeMs + 1000 })).toBe('TRUST_CERT_EXPIRED');
  expect(codeOf({ path, anchor }, { atMs: chainTimeMs - 11 * dayMs })).toBe('TRUST_CERT_EXPIRED');
  expect(codeOf(chain('old anchor', three, { 2: { notAfterMs: chainTimeMs - 1000 } }))).toBe(
    'TRUST_CERT_EXPIRED',
  );
});

it('an anchor that was renewed with its key', () => {
  const { path, anchor: old } = chain('renewed', three, { 2: { notAfterMs: chainTimeMs - 1000 } });
  const { anchor } = chain('renewed', three, { 2: { serial: 99 } });
  for (const anchors of [
    [old, anchor],
    [anchor, old],
  ]) {
    const { result } = validatePath({ path, anchors, atMs: chainTimeMs });
    expect(result?.anchor.thumbprint).toBe(anchor.thumbprint);
  }
});

it('keys and versions that OpenSSL accepts and we do not', () => {
  const [leaf, lower, anchor] = three;
  if (leaf === undefined || lower === undefined || anchor === undefined) throw new Error('no key');
  expect(codeOf(chain('p521', [ecKey('P-521'), lower, anchor]))).toBe('TRUST_CHAIN_INVALID');
  expect(codeOf(chain('secp256k1', [ecKey('secp256k1'), lower, anchor]))).toBe('TRUST_CHAIN_INVALID');
  expect(codeOf(chain('ed25519', [edKey(), lower, anchor]))).toBe('TRUST_CHAIN_INVALID');
  expect(codeOf(chain('rsa', [rsaKey(2048), lower, anchor]))).toBe('ok');
  expect(codeOf(chain('first version', three, { 0: { version: undefined, extensions: [] } }))).toBe(
    'TRUST_CHAIN_INVALID',
  );
});

it('policies: the extension is processed, constraints of policies are not', () => {
  const policies = extension('2.5.29.32', sequence(sequence(der(0x06, Buffer.from([0x2a, 0x03])))), true);
  const required = extension('2.5.29.36', sequence(der(0x80, Buffer.from([0]))), true);
  const change = (...extensions: readonly Buffer[]) => ({
    1: { extensions: [basicConstraints(true), ...extensions] },
  });
  expect(codeOf(chain('policy', three, change(policies)))).toBe('ok');
  expect(codeOf(chain('policy required', three, change(required)))).toBe('TRUST_CHAIN_INVALID');
});

it('a required purpose', () => {
  const purpose = (whenAbsent: 'accept' | 'refuse') => ({ purpose: { purpose: signer, whenAbsent } });
  const leaf = (...oids: readonly string[]) =>
    chain('purpose', three, { 0: { extensions: [keyUsage(0), purposes(...oids)] } });
  expect(codeOf(leaf(signer), purpose('refuse'))).toBe('ok');
  expect(codeOf(leaf('2.5.29.37.0'), purpose('refuse'))).toBe('ok');
  expect(codeOf(leaf('1.3.6.1.5.5.7.3.1'), purpose('accept'))).toBe('TRUST_CHAIN_INVALID');
  expect(codeOf(chain('none', three), purpose('accept'))).toBe('ok');
  expect(codeOf(chain('none', three), purpose('refuse'))).toBe('TRUST_CHAIN_INVALID');
});

it('self-issued certificates do not count as levels', () => {
  const [leaf, second, first, anchor] = keys;
  if (leaf === undefined || second === undefined || first === undefined || anchor === undefined)
    throw new Error('no key');
  const name = distinguishedName('rollover');
  const limited = { extensions: [basicConstraints(true, 1), keyUsage(5)] };
  // the authority's new key, certified by its old one, under one name
  const changes = {
    0: { issuer: name },
    1: { subject: name, issuer: name },
    2: { subject: name },
    3: limited,
  };
  expect(codeOf(chain('rollover', [leaf, second, first, anchor], changes))).toBe('ok');
  expect(codeOf(chain('levels', [leaf, second, first, anchor], { 3: limited }))).toBe('TRUST_CHAIN_INVALID');
});

it('name constraints that cannot be honoured are refused', () => {
  const constrained = (constraints: Buffer, ...names: readonly Buffer[]) =>
    codeOf(
      chain('constraints', three, {
        0: { extensions: [keyUsage(0), ...(names.length === 0 ? [] : [altNames(...names)])] },
        1: { extensions: [basicConstraints(true), keyUsage(5), constraints] },
      }),
    );
  const other = der(0xa0, der(0x06, Buffer.from([0x2a, 0x03])), der(0xa0, der(0x05)));
  const subtree = sequence(dnsName('example.com'), der(0x80, Buffer.from([1])));
  const withMinimum = extension('2.5.29.30', sequence(der(0xa0, subtree)), true);
  expect(constrained(nameConstraints({ permitted: [other] }))).toBe('TRUST_CHAIN_INVALID');
  expect(constrained(withMinimum)).toBe('TRUST_CHAIN_INVALID');
  expect(constrained(extension('2.5.29.30', sequence(), true))).toBe('TRUST_CHAIN_INVALID');
  expect(constrained(nameConstraints({ permitted: [directoryName('constraints')] }))).toBe('ok');
  // a URI without a host honours no constraint
  const did = uriName('did:platform:org:w1abc');
  expect(constrained(nameConstraints({ permitted: [uriName('example.com')] }), did)).toBe(
    'TRUST_CHAIN_INVALID',
  );
  expect(constrained(nameConstraints({ excluded: [uriName('example.com')] }), did)).toBe(
    'TRUST_CHAIN_INVALID',
  );
  expect(constrained(nameConstraints({ permitted: [dnsName('example.com')] }), did)).toBe('ok');
});

it('directory names meet name constraints in every spelling', () => {
  const nameOf = (tag: number, ...texts: readonly string[]) =>
    sequence(...texts.map((text) => der(0x31, sequence(oid('2.5.4.3'), der(tag, Buffer.from(text))))));
  const excluding = (base: Buffer, subject: Buffer) =>
    codeOf(
      chain('spellings', three, {
        0: { subject },
        1: {
          extensions: [basicConstraints(true), keyUsage(5), nameConstraints({ excluded: [der(0xa4, base)] })],
        },
      }),
    );
  const base = nameOf(0x0c, 'State Bank');
  expect(excluding(base, nameOf(0x0c, 'State Bank', 'x'))).toBe('TRUST_CHAIN_INVALID');
  expect(excluding(base, nameOf(0x13, 'State Bank', 'x'))).toBe('TRUST_CHAIN_INVALID');
  expect(excluding(base, nameOf(0x0c, 'STATE  bank ', 'x'))).toBe('TRUST_CHAIN_INVALID');
  const wide = der(0x1e, Buffer.from('State Bank', 'utf16le').swap16());
  expect(excluding(base, sequence(der(0x31, sequence(oid('2.5.4.3'), wide))))).toBe('TRUST_CHAIN_INVALID');
  expect(excluding(base, nameOf(0x0c, 'State Banks', 'x'))).toBe('ok');
  expect(excluding(base, nameOf(0x0c, 'x', 'State Bank'))).toBe('ok');
});

it('name constraints are compared with a bounded number of names', () => {
  const hosts = (count: number, end: string) =>
    Array.from({ length: count }, (_, at) => dnsName(`${at}.${end}`));
  const compared = (count: number) =>
    codeOf(
      chain('comparisons', three, {
        // and its subject
        0: { extensions: [keyUsage(0), altNames(...hosts(count - 1, 'example'))] },
        1: {
          extensions: [
            basicConstraints(true),
            keyUsage(5),
            nameConstraints({ excluded: hosts(128, 'other') }),
          ],
        },
      }),
    );
  expect(compared(128)).toBe('ok');
  expect(compared(129)).toBe('TRUST_CHAIN_INVALID');
});

it('x5c', () => {
  const ders = chainDers('x5c', three).slice(0, 2);
  const x5c = ders.map((each) => each.toString('base64'));
  expect(judgeX5c(x5c).result?.length).toBe(2);
  const [leaf = ''] = x5c;
  const six = Array.from({ length: 6 }, () => leaf);
  const wrong = [
    undefined,
    {},
    'a',
    [],
    [''],
    [1],
    [leaf.slice(1)],
    ['e30='],
    [leaf.replaceAll('+', '-')],
    [`${leaf} `],
    six,
  ];
  for (const value of wrong.filter((each) => JSON.stringify(each) !== JSON.stringify([leaf]))) {
    expect(judgeX5c(value).violations.map(({ code }) => code)).toEqual(['TRUST_CHAIN_INVALID']);
  }
});

it('one flipped bit of a certificate is refused wherever it is', () => {
  const ders = chainDers('flipped', three);
  const [leaf = Buffer.of(), lower = Buffer.of(), anchor = Buffer.of()] = ders;
  const parsed = [lower, anchor].map((each) => parseCertificate(each));
  for (let bit = 0; bit < leaf.length * 8; bit += 5) {
    const changed = Buffer.from(leaf);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    let code = 'CERT_MALFORMED';
    try {
      const [issuer, root] = parsed;
      if (issuer === undefined || root === undefined) throw new Error('no chain');
      code = codeOf({ path: [parseCertificate(changed), issuer], anchor: root });
    } catch (error) {
      if (!isAppError(error, 'invalid')) throw error;
    }
    expect([bit, code]).not.toEqual([bit, 'ok']);
  }
});

it('nothing but a refusal comes of any bytes', () => {
  const whole = chainDers('fuzz', three)[0] ?? Buffer.of();
  const cut = fc
    .tuple(fc.nat(whole.length), fc.uint8Array({ maxLength: 6 }), fc.nat(whole.length))
    .map(([at, bytes, skip]) =>
      Buffer.concat([whole.subarray(0, at), bytes, whole.subarray(Math.min(whole.length, at + skip))]),
    );
  fc.assert(
    fc.property(fc.oneof(cut, fc.uint8Array({ maxLength: 64 })), (bytes) => {
      try {
        const parsed = parseCertificate(bytes);
        return codeOf({ path: [parsed], anchor: parsed }) !== 'ok';
      } catch (error) {
        return isAppError(error, 'invalid') && error.code === 'CERT_MALFORMED';
      }
    }),
    { numRuns: 1000 },
  );
});

it('DER has one spelling', () => {
  const good = chainDers('spelling', three)[0] ?? Buffer.of();
  const variants: Record<string, Buffer> = {
    'bytes behind it': Buffer.concat([good, Buffer.from([0])]),
    'length with a leading zero': Buffer.concat([
      Buffer.from([0x30, 0x83, 0, ...good.subarray(2, 4)]),
      good.subarray(4),
    ]),
    'indefinite length': Buffer.concat([Buffer.from([0x30, 0x80]), good.subarray(4), Buffer.from([0, 0])]),
    'cut off': good.subarray(0, -1),
    empty: Buffer.of(),
  };
  for (const [what, bytes] of Object.entries(variants)) {
    expect(() => parseCertificate(bytes), what).toThrow(expect.objectContaining({ code: 'CERT_MALFORMED' }));
  }
  const twice = [extension('1.2.3', Buffer.of()), extension('1.2.3', Buffer.of())];
  expect(() => chain('twice', three, { 0: { extensions: twice } })).toThrow('an extension occurs twice');
  expect(() => parseCertificate(Buffer.alloc(20_000))).toThrow('too long');
});
