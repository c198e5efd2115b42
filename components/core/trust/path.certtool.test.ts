import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { CLIENT_AUTH } from './testing/flaws.ts';
import { isAccepted, type JudgedChain, judgedChains } from './testing/judged-chains.ts';
import { pem } from './testing/openssl.ts';

const version = spawnSync('certtool', ['--version'], { encoding: 'utf8' });
// macOS has a program of the same name.
const hasCerttool = version.status === 0 && version.stdout.startsWith('certtool 3');

/** Chains that GnuTLS judges otherwise, by their names, and why. */
const DIFFERENCES: readonly (readonly [RegExp, string])[] = [
  [/^signs nothing, leaf of/, 'the key usage of the leaf is left to the caller'],
  [/^malformed key usage, leaf of/, 'a key usage that is left to the caller is not read'],
  [
    /^for another purpose, level (?:1 of 2|2 of 3|3 of 4|4 of 5)$/,
    'an anchor is a name and a key: its purposes are not judged',
  ],
  [/^URI constrained at/, 'permitted URIs are not supported'],
  [/^subject constrained at/, 'permitted directory names are not supported'],
  [/^other kind honoured,/, 'a common name is a host name where the certificate names no host'],
];

/** Whether certtool accepts a chain; it reads the clock. */
function isAcceptedByCerttool({ path, anchor }: JudgedChain, folder: string): boolean {
  writeFileSync(join(folder, 'anchor.pem'), pem(anchor));
  // The profile has keys of 112 bits of security, RSA of 2048 bits.
  const options = ['--verify', '--verify-profile', 'medium', '--verify-purpose', CLIENT_AUTH];
  const input = path.map(pem).join('');
  const { status } = spawnSync('certtool', [...options, '--load-ca-certificate', 'anchor.pem'], {
    cwd: folder,
    input,
  });
  return status === 0;
}

it.skipIf(!hasCerttool)(
  'chains are judged as GnuTLS judges them, but for its own rules (skipped without certtool)',
  { timeout: 120_000 },
  () => {
    const nowMs = Math.floor(Date.now() / 1000) * 1000;
    const { flawed, sound } = judgedChains(nowMs);
    const folder = mkdtempSync(join(tmpdir(), 'chancery-paths-'));
    try {
      const both = [...flawed, ...sound].map((chain) => ({
        name: chain.name,
        ours: isAccepted(chain, nowMs),
        theirs: isAcceptedByCerttool(chain, folder),
      }));
      const unlike = both.filter(({ ours, theirs }) => ours !== theirs).map(({ name }) => name);
      expect(unlike.filter((name) => !DIFFERENCES.some(([pattern]) => pattern.test(name)))).toEqual([]);
      // A row that explains no difference hides one that may come.
      const idle = DIFFERENCES.filter(([pattern]) => !unlike.some((name) => pattern.test(name)));
      expect(idle.map(([, reason]) => reason)).toEqual([]);
      expect(both.slice(0, flawed.length).filter(({ theirs }) => !theirs).length).toBeGreaterThan(200);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
