import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isAppError } from '../errors/errors.ts';
import { parseCertificate } from './certificate.ts';
import { validatePath } from './path.ts';
import { chainDers, chainTimeMs, ecKey, rsaKey } from './testing/chains.ts';
import { CLIENT_AUTH, type FlawedChain, type FlawKeys, flawedChains, soundChains } from './testing/flaws.ts';
import { hasOpenssl, pem } from './testing/openssl.ts';

const keys: FlawKeys = { other: ecKey('P-256'), rsa: rsaKey(2048), weak: rsaKey(1024), p384: ecKey('P-384') };
const standard = Array.from({ length: 5 }, () => ecKey('P-256'));

/** A chain as both judges are given it: leaf first, without the anchor and what was left out. */
interface Input {
  readonly name: string;
  readonly path: readonly Buffer[];
  readonly anchor: Buffer;
}

function inputOf({ name, levels, changes, key, without = [] }: FlawedChain, index: number): Input {
  const used = standard.slice(0, levels).map((each, level) => (level === key?.level ? key.key : each));
  const ders = chainDers(`chain ${index}`, used, changes);
  const anchor = ders.at(-1);
  if (anchor === undefined) throw new Error('no anchor');
  return { name, path: ders.slice(0, -1).filter((_, level) => !without.includes(level)), anchor };
}

function isAccepted({ path, anchor }: Input): boolean {
  try {
    const certificates = path.map(parseCertificate);
    const purpose = { purpose: CLIENT_AUTH, whenAbsent: 'accept' } as const;
    const input = { path: certificates, anchors: [parseCertificate(anchor)], atMs: chainTimeMs, purpose };
    return validatePath(input).violations.length === 0;
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

/** Indexes of the chains that openssl accepts, by one call for all of them. */
function acceptedByOpenssl(inputs: readonly Input[]): ReadonlySet<number> {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-paths-'));
  try {
    writeFileSync(join(folder, 'anchors.pem'), inputs.map(({ anchor }) => pem(anchor)).join(''));
    writeFileSync(join(folder, 'others.pem'), inputs.flatMap(({ path }) => path.slice(1).map(pem)).join(''));
    const files = inputs.map(({ path: [leaf = Buffer.of()] }, index) => {
      writeFileSync(join(folder, `${index}.pem`), pem(leaf));
      return `${index}.pem`;
    });
    const options = ['-purpose', 'sslclient', '-auth_level', '2', '-attime', String(chainTimeMs / 1000)];
    const stores = ['-no-CApath', '-no-CAstore', '-CAfile', 'anchors.pem', '-untrusted', 'others.pem'];
    const { stdout } = spawnSync('openssl', ['verify', ...options, ...stores, ...files], {
      cwd: folder,
      encoding: 'utf8',
    });
    return new Set([...stdout.matchAll(/^([0-9]+)\.pem: OK$/gm)].map(([, index]) => Number(index)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

it.skipIf(!hasOpenssl)(
  'chains are judged as OpenSSL 3 judges them (skipped without openssl)',
  { timeout: 60_000 },
  () => {
    const flawed = [...flawedChains(keys)];
    const chains = [...flawed, ...soundChains(keys)];
    const inputs = chains.map(inputOf);
    const theirs = acceptedByOpenssl(inputs);
    const both = inputs.map((input, index) => ({
      name: input.name,
      ours: isAccepted(input),
      theirs: theirs.has(index),
    }));
    expect(both.filter((each) => each.ours !== each.theirs)).toEqual([]);
    expect(both.slice(0, flawed.length).filter(({ ours }) => ours)).toEqual([]);
    expect(both.slice(flawed.length).filter(({ ours }) => !ours)).toEqual([]);
    expect(flawed.length).toBeGreaterThanOrEqual(200);
  },
);
