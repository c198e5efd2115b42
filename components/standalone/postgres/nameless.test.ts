import { execFile } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findBinaries } from './binaries.ts';
import { chooseLauncher, currentAccount, LAUNCH_ENVIRONMENT, works } from './launcher.ts';
import { placePrograms } from './programs.ts';

/** A user id without an entry in the password database, as in containers with arbitrary user ids. */
const nameless = 1_234_567;
const launcher = chooseLauncher('linux', { userId: nameless, hasName: false });
const isTestable =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  launcher !== undefined &&
  works({ ...launcher, account: nameless }, ['true']);

describe.runIf(isTestable)('PostgreSQL under an account without a name', () => {
  it('is initialised in a user namespace, which gives the account a name', async () => {
    const root = mkdtempSync(join(tmpdir(), 'pgn-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const account = { prefix: [], account: nameless };
    const { initdb } = placePrograms(findBinaries(process.platform, process.arch), account, [
      tmpdir(),
      '/tmp',
    ]);
    const initialise = (prefix: readonly string[], name: string) => {
      const cwd = join(root, name);
      mkdirSync(cwd, { mode: 0o700 });
      chownSync(cwd, nameless, nameless);
      const [command = '', ...words] = [
        ...prefix,
        initdb,
        '--pgdata=/proc/self/cwd',
        '--auth=trust',
        '--no-sync',
      ];
      const spawn = { cwd, uid: nameless, gid: nameless, env: LAUNCH_ENVIRONMENT };
      return promisify(execFile)(command, words, spawn);
    };
    await expect(initialise([], 'direct')).rejects.toThrow(/could not look up effective user ID/);
    await initialise(launcher?.prefix ?? [], 'mapped');
    expect(readFileSync(join(root, 'mapped', 'PG_VERSION'), 'utf8')).toMatch(/^18/);
  }, 60_000);
});

describe('the account of this process', () => {
  it.runIf(process.getuid?.() === 0)("has a name when it is root's", () => {
    expect(currentAccount()).toEqual({ userId: 0, hasName: true });
  });

  it('starts PostgreSQL directly with a name, and only in a namespace without one', () => {
    const named = chooseLauncher('linux', { userId: 1000, hasName: true });
    expect(named?.prefix).not.toContain('unshare');
    const without = chooseLauncher('linux', { userId: 1000, hasName: false });
    expect(without === undefined || without.prefix[0] === 'unshare').toBe(true);
    expect(without?.account).toBeUndefined();
  });
});
