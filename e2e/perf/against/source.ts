import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('../../..', import.meta.url));

function git(...args: readonly string[]): Buffer {
  return execFileSync('git', ['-C', here, ...args], {
    maxBuffer: 1 << 30,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** Abbreviated id of a commit; RangeError if this repository has none of that name. */
export function commitId(name: string): string {
  try {
    return git('rev-parse', '--short', '--verify', '--end-of-options', `${name}^{commit}`).toString().trim();
  } catch (error) {
    throw new RangeError(`this repository has no commit ${name}`, { cause: error });
  }
}

/** The same lockfile: the packages that are installed here serve the other source tree too. */
function hasSamePackages(there: string): boolean {
  const [ours, theirs] = [here, there].map((root) => readFileSync(join(root, 'package-lock.json'), 'utf8'));
  return ours === theirs;
}

/** Writes the files of a commit to `dir`, which must not exist, and installs the packages of its lockfile. */
export function writeSource(commit: string, dir: string): void {
  mkdirSync(dir, { recursive: true });
  const archive = git('archive', '--format=tar', commit);
  execFileSync('tar', ['-x', '-C', dir], { input: archive });
  if (hasSamePackages(dir)) symlinkSync(join(here, 'node_modules'), join(dir, 'node_modules'));
  else execFileSync('make', ['-C', dir, 'install'], { stdio: ['ignore', 2, 2] });
}
