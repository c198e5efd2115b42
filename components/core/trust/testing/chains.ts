import { constants, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { type Certificate, parseCertificate } from '../certificate.ts';
import { bits, boolean, der, distinguishedName, integer, octets, oid, sequence, time } from './der-writer.ts';

/** A key pair of a test. */
export interface TestKey {
  readonly privateKey: KeyObject;
  readonly spki: Buffer;
}

function testKey({
  privateKey,
  publicKey,
}: {
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}): TestKey {
  return { privateKey, spki: publicKey.export({ format: 'der', type: 'spki' }) };
}

export const ecKey = (namedCurve: string): TestKey => testKey(generateKeyPairSync('ec', { namedCurve }));
export const rsaKey = (modulusLength: number): TestKey =>
  testKey(generateKeyPairSync('rsa', { modulusLength }));
export const edKey = (): TestKey => testKey(generateKeyPairSync('ed25519'));

export const chainTimeMs = 1_748_779_200_000;
export const dayMs = 86_400_000;

/** How a certificate is signed: the algorithm in its two places, and the hash. */
export interface TestAlgorithm {
  readonly identifier: Buffer;
  readonly hash: string | null;
  readonly padding?: number;
}

const sha = (name: string): Buffer =>
  sequence(oid({ sha1: '1.3.14.3.2.26', sha256: '2.16.840.1.101.3.4.2.1' }[name] ?? ''));

const pss = (hash: string): TestAlgorithm => ({
  identifier: sequence(
    oid('1.2.840.113549.1.1.10'),
    sequence(
      der(0xa0, sha(hash)),
      der(0xa1, sequence(oid('1.2.840.113549.1.1.8'), sha(hash))),
      der(0xa2, integer(32)),
    ),
  ),
  hash,
  padding: constants.RSA_PKCS1_PSS_PADDING,
});

const nul = der(0x05);
export const ALGORITHM = {
  ecdsaSha256: { identifier: sequence(oid('1.2.840.10045.4.3.2')), hash: 'sha256' },
  ecdsaSha384: { identifier: sequence(oid('1.2.840.10045.4.3.3')), hash: 'sha384' },
  ecdsaSha1: { identifier: sequence(oid('1.2.840.10045.4.1')), hash: 'sha1' },
  rsaSha256: { identifier: sequence(oid('1.2.840.113549.1.1.11'), nul), hash: 'sha256' },
  rsaSha1: { identifier: sequence(oid('1.2.840.113549.1.1.5'), nul), hash: 'sha1' },
  rsaPss: pss('sha256'),
  ed25519: { identifier: sequence(oid('1.3.101.112')), hash: null },
} as const satisfies Record<string, TestAlgorithm>;

export const extension = (identifier: string, value: Buffer, isCritical = false): Buffer =>
  sequence(oid(identifier), ...(isCritical ? [boolean(true)] : []), octets(value));

export const basicConstraints = (isAuthority: boolean, pathLength?: number): Buffer =>
  extension(
    '2.5.29.19',
    sequence(
      ...(isAuthority ? [boolean(true)] : []),
      ...(pathLength === undefined ? [] : [integer(pathLength)]),
    ),
    true,
  );

/** Bits of key usage: 0 digitalSignature, 5 keyCertSign, 6 cRLSign. */
export function keyUsage(...usages: readonly number[]): Buffer {
  const byte = usages.reduce((value, bit) => value | (0x80 >> bit), 0);
  const last = Math.max(...usages);
  return extension('2.5.29.15', bits(Buffer.from([byte]), 7 - last), true);
}

export const purposes = (...oids: readonly string[]): Buffer =>
  extension('2.5.29.37', sequence(...oids.map(oid)));
export const altNames = (...names: readonly Buffer[]): Buffer => extension('2.5.29.17', sequence(...names));
export const dnsName = (name: string): Buffer => der(0x82, Buffer.from(name));
export const emailName = (name: string): Buffer => der(0x81, Buffer.from(name));
export const uriName = (name: string): Buffer => der(0x86, Buffer.from(name));
export const addressName = (...bytes: readonly number[]): Buffer => der(0x87, Buffer.from(bytes));
export const directoryName = (...names: readonly string[]): Buffer => der(0xa4, distinguishedName(...names));

export function nameConstraints({
  permitted = [],
  excluded = [],
}: Partial<Record<'permitted' | 'excluded', readonly Buffer[]>>): Buffer {
  const trees = (tag: number, names: readonly Buffer[]) =>
    names.length === 0 ? [] : [der(tag, ...names.map((name) => sequence(name)))];
  return extension('2.5.29.30', sequence(...trees(0xa0, permitted), ...trees(0xa1, excluded)), true);
}

/** What a certificate says; `signer` may be another key than the issuer's. */
export interface CertificateSpec {
  readonly subject: Buffer;
  readonly issuer: Buffer;
  readonly key: TestKey;
  readonly signer: TestKey;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly extensions: readonly Buffer[];
  readonly algorithm: TestAlgorithm;
  /** Undefined for a certificate of the first version. */
  readonly version: number | undefined;
  /** The algorithm outside of the signed part, when it is another one. */
  readonly outer?: TestAlgorithm | undefined;
  readonly serial: number;
  /** Changes the finished signature. */
  readonly spoil?: ((signature: Buffer) => Buffer) | undefined;
}

/** Writes and signs a certificate. */
export function certificateDer(spec: CertificateSpec): Buffer {
  const { algorithm, extensions } = spec;
  const body = sequence(
    ...(spec.version === undefined ? [] : [der(0xa0, integer(spec.version - 1))]),
    integer(spec.serial),
    algorithm.identifier,
    spec.issuer,
    sequence(time(spec.notBeforeMs), time(spec.notAfterMs)),
    spec.subject,
    spec.key.spki,
    ...(extensions.length === 0 ? [] : [der(0xa3, sequence(...extensions))]),
  );
  const { privateKey } = spec.signer;
  const padding = algorithm.padding === undefined ? {} : { padding: algorithm.padding, saltLength: 32 };
  const signature = sign(algorithm.hash, body, { key: privateKey, ...padding });
  return sequence(body, (spec.outer ?? algorithm).identifier, bits(spec.spoil?.(signature) ?? signature));
}

/** Changes to the certificates of a chain, the leaf first and the anchor last. */
export type ChainChanges = Readonly<Record<number, Partial<CertificateSpec>>>;

/** A chain of certificates: leaf, intermediate ones, anchor. */
export interface TestChain {
  readonly ders: readonly Buffer[];
  readonly path: readonly Certificate[];
  readonly anchor: Certificate;
}

/**
 * A chain of `keys.length` certificates with names of their own; the keys are those of the leaf first. Issuers are
 * authorities without a path length, the leaf may sign.
 */
export function chainDers(
  name: string,
  keys: readonly TestKey[],
  changes: ChainChanges = {},
): readonly Buffer[] {
  const last = keys.length - 1;
  const names = keys.map((_, at) => distinguishedName(name, at === last ? 'anchor' : `level ${at}`));
  return keys.map((key, at) => {
    const signer = keys[Math.min(at + 1, last)] ?? key;
    const spec: CertificateSpec = {
      subject: names[at] ?? sequence(),
      issuer: names[Math.min(at + 1, last)] ?? sequence(),
      key,
      signer,
      notBeforeMs: chainTimeMs - 10 * dayMs,
      notAfterMs: chainTimeMs + 10 * dayMs,
      extensions:
        at === 0 ? [basicConstraints(false), keyUsage(0)] : [basicConstraints(true), keyUsage(5, 6)],
      algorithm: signer.privateKey.asymmetricKeyType === 'rsa' ? ALGORITHM.rsaSha256 : ALGORITHM.ecdsaSha256,
      version: 3,
      serial: at + 1,
    };
    return certificateDer({ ...spec, ...changes[at] });
  });
}

/** The same, parsed. */
export function chain(name: string, keys: readonly TestKey[], changes: ChainChanges = {}): TestChain {
  const ders = chainDers(name, keys, changes);
  const path = ders.map((each) => parseCertificate(each));
  const anchor = path.pop();
  if (anchor === undefined) throw new Error('no anchor');
  return { ders, path, anchor };
}
