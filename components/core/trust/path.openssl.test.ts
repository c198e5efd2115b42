import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { chainTimeMs } from './testing/chains.ts';
import { isAccepted, type JudgedChain, judgedChains } from './testing/judged-chains.ts';
import { hasOpenssl, pem } from './testing/openssl.ts';

/** Indexes of the chains that openssl accepts, by one call for all of them. */
function acceptedByOpenssl(chains: readonly JudgedChain[]): ReadonlySet<number> {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-paths-'));
  try {
    writeFileSync(join(folder, 'anchors.pem'), chains.map(({ anchor }) => pem(anchor)).join(''));
    writeFileSync(join(folder, 'others.pem'), chains.flatMap(({ path }) => path.slice(1).map(pem)).join(''));
    const files = chains.map(({ path: [leaf = Buffer.of()] }, index) => {
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
    const { flawed, sound } = judgedChains(chainTimeMs);
    const chains = [...flawed, ...sound];
    const theirs = acceptedByOpenssl(chains);
    const both = chains.map((chain, index) => ({
      name: chain.name,
      ours: isAccepted(chain, chainTimeMs),
      theirs: theirs.has(index),
    }));
    expect(both.filter((each) => each.ours !== each.theirs)).toEqual([]);
    expect(both.slice(0, flawed.length).filter(({ ours }) => ours)).toEqual([]);
    expect(both.slice(flawed.length).filter(({ ours }) => !ours)).toEqual([]);
    expect(flawed.length).toBeGreaterThanOrEqual(200);
  },
);
