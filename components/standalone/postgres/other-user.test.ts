import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '#kit/log/log.ts';
import { type Postgres, startPostgres } from './embedded.ts';
import { type AsRoot, chooseLauncher } from './launcher.ts';
import { ownDataDirectory } from './ownership.ts';
import { placePrograms } from './programs.ts';

const log = createLogger({ service: 'test', level: 'silent' });
const asRootItself = { userId: 0, hasName: true };
const otherUser =
  process.getuid?.() === 0 ? chooseLauncher(process.platform, asRootItself, 'other-user') : undefined;
const both =
  otherUser !== undefined && chooseLauncher(process.platform, asRootItself, 'namespace') !== undefined;

describe.runIf(otherUser !== undefined)('PostgreSQL under another account', () => {
  const launcher = otherUser ?? { prefix: [] };
  const nobody = launcher.account ?? 0;
  let root = '';
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'pgo-'));
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const start = (asRoot: AsRoot): Promise<Postgres> =>
    startPostgres({
      dataDir: join(root, 'data'),
      socketDir: join(root, 's'),
      fsync: false,
      lockWaitMs: 0,
      asRoot,
      log,
    });

  it("keeps the caller's directories private and removes its link", async () => {
    const server = await start('other-user');
    expect(readFileSync(`/proc/${server.pid}/status`, 'utf8')).toMatch(
      new RegExp(`^Uid:\\s+${nobody}\\s`, 'm'),
    );
    expect(readFileSync(`/proc/${server.pid}/status`, 'utf8')).toMatch(/^Groups:\s*$/m);
    expect(statSync(root)).toMatchObject({ uid: 0 });
    expect(statSync(join(root, 's'))).toMatchObject({ uid: 0 });
    expect(statSync(join(root, 's')).mode & 0o777).toBe(0o700);
    expect(statSync(join(root, 'data'))).toMatchObject({ uid: nobody });
    expect(statSync(join(root, 'data')).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(root, 's'))).toEqual(['.s.PGSQL.5432']);
    await server.stop();
    expect(readdirSync(join(root, 's'))).toEqual([]);
    expect(readdirSync(root).sort()).toEqual(['data', 's']);
  }, 30_000);

  it('does not replace the socket of a server that answers there', async () => {
    const first = await start('other-user');
    const second = startPostgres({
      dataDir: join(root, 'other'),
      socketDir: join(root, 's'),
      fsync: false,
      lockWaitMs: 0,
      asRoot: 'other-user',
      log,
    });
    await expect(second).rejects.toMatchObject({ kind: 'conflict', code: 'EMBEDDED_POSTGRES_LOCKED' });
    expect(lstatSync(join(root, 's', '.s.PGSQL.5432')).isSymbolicLink()).toBe(true);
    await first.stop();
  }, 30_000);

  it.runIf(both)(
    'opens a data directory that the other launcher made, in both directions',
    async () => {
      for (const asRoot of ['namespace', 'other-user', 'namespace'] as const) {
        const server = await start(asRoot);
        const owner = asRoot === 'namespace' ? 0 : nobody;
        expect(statSync(join(root, 'data', 'base'))).toMatchObject({ uid: owner, gid: owner });
        await server.stop();
      }
    },
    60_000,
  );

  it.runIf(both)(
    'changes no owner under a running server',
    async () => {
      for (const [running, other] of [
        ['namespace', 'other-user'],
        ['other-user', 'namespace'],
      ] as const) {
        const server = await start(running);
        const before = statSync(join(root, 'data')).uid;
        await expect(
          startPostgres({
            dataDir: join(root, 'data'),
            socketDir: join(root, 'elsewhere'),
            lockWaitMs: 0,
            asRoot: other,
            log,
          }),
        ).rejects.toMatchObject({ code: 'EMBEDDED_POSTGRES_LOCKED' });
        expect(statSync(join(root, 'data')).uid).toBe(before);
        await server.stop();
      }
    },
    60_000,
  );

  it('leaves no unreachable server behind', async () => {
    mkdirSync(join(root, 's', '.s.PGSQL.5432'), { recursive: true });
    await expect(start('other-user')).rejects.toMatchObject({ code: 'ERR_FS_EISDIR' });
    expect(existsSync(join(root, 'data', 'PG_VERSION'))).toBe(true);
    expect(existsSync(join(root, 'data', 'postmaster.pid'))).toBe(false);
  }, 30_000);

  it('finishes an interrupted change of owner', () => {
    const data = join(root, 'data');
    mkdirSync(join(data, 'base', '1'), { recursive: true });
    writeFileSync(join(data, 'base', '1', 'file'), 'x');
    ownDataDirectory(data, nobody);
    rmSync(join(data, 'base', '1', 'file'));
    writeFileSync(join(data, 'base', '1', 'file'), 'left behind');
    ownDataDirectory(data, nobody);
    expect(statSync(join(data, 'base', '1', 'file'))).toMatchObject({ uid: nobody, gid: nobody });
    ownDataDirectory(data, undefined);
    expect(statSync(join(data, 'base', '1', 'file'))).toMatchObject({ uid: 0, gid: 0 });
    expect(statSync(data)).toMatchObject({ uid: 0, gid: 0 });
  });

  it('does not change the owner of anything that a link in the directory points to', () => {
    const data = join(root, 'data');
    mkdirSync(data);
    mkdirSync(join(root, 'mine'));
    writeFileSync(join(root, 'mine', 'file'), 'x');
    symlinkSync(join(root, 'mine'), join(data, 'folder'));
    symlinkSync(join(root, 'mine', 'file'), join(data, 'file'));
    ownDataDirectory(data, nobody);
    expect(lstatSync(join(data, 'folder'))).toMatchObject({ uid: nobody });
    expect(statSync(join(root, 'mine'))).toMatchObject({ uid: 0 });
    expect(statSync(join(root, 'mine', 'file'))).toMatchObject({ uid: 0 });
  });

  describe('the programs of PostgreSQL', () => {
    /** A package of substitutes in a directory that only root can enter. */
    const makePackage = () => {
      const native = join(root, 'private', 'native');
      mkdirSync(join(native, 'bin'), { recursive: true });
      mkdirSync(join(native, 'share', 'postgresql'), { recursive: true });
      chmodSync(join(root, 'private'), 0o700);
      writeFileSync(join(root, 'private', 'package.json'), '{"version":"0.0.0"}');
      writeFileSync(join(native, 'share', 'postgresql', 'postgres.bki'), 'catalogue', { mode: 0o600 });
      for (const name of ['initdb', 'postgres']) {
        writeFileSync(join(native, 'bin', name), '#!/bin/sh\nexit 0\n', { mode: 0o700 });
      }
      symlinkSync('postgres', join(native, 'bin', 'link'));
      return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
    };
    const open = () => {
      const place = join(root, 'open');
      mkdirSync(place);
      chmodSync(place, 0o755);
      chmodSync(root, 0o755);
      return place;
    };
    const copyIn = (place: string) => join(place, `chancery-postgres-0.0.0-${process.arch}`);

    it('run in place if the account can reach them', () => {
      const found = makePackage();
      for (const path of [root, join(root, 'private')]) chmodSync(path, 0o755);
      for (const path of [found.initdb, found.postgres]) chmodSync(path, 0o755);
      chmodSync(join(root, 'private', 'native', 'share', 'postgresql', 'postgres.bki'), 0o644);
      expect(placePrograms(found, launcher, [])).toEqual(found);
    });

    it('are copied once into the first suitable place', () => {
      const found = makePackage();
      const place = open();
      const closed = join(root, 'closed');
      mkdirSync(closed, { mode: 0o700 });
      const placed = placePrograms(found, launcher, [closed, join(root, 'absent'), place]);
      expect(placed.postgres).toBe(join(copyIn(place), 'bin', 'postgres'));
      expect(readdirSync(place)).toEqual([`chancery-postgres-0.0.0-${process.arch}`]);
      expect(lstatSync(join(copyIn(place), 'bin', 'link')).isSymbolicLink()).toBe(true);
      const { ino } = statSync(placed.postgres);
      placePrograms(found, launcher, [place]);
      expect(statSync(placed.postgres).ino).toBe(ino);
    });

    it('are copied again when part of the copy is missing', () => {
      const found = makePackage();
      const place = open();
      placePrograms(found, launcher, [place]);
      rmSync(join(copyIn(place), 'bin', 'link'));
      placePrograms(found, launcher, [place]);
      expect(existsSync(join(copyIn(place), 'bin', 'link'))).toBe(true);
      expect(readdirSync(place)).toHaveLength(1);
    });

    it('are never run from a copy that another account made or may change', () => {
      const found = makePackage();
      const place = open();
      placePrograms(found, launcher, [place]);
      chmodSync(copyIn(place), 0o777);
      expect(() => placePrograms(found, launcher, [place])).toThrow(/belongs to another account/);
      chmodSync(copyIn(place), 0o755);
      ownDataDirectory(copyIn(place), nobody);
      expect(() => placePrograms(found, launcher, [place])).toThrow(/belongs to another account/);
    });

    it('name the remedy where no place is suitable', () => {
      expect(() => placePrograms(makePackage(), launcher, [join(root, 'absent')])).toThrow(/TMPDIR/);
    });
  });
});

describe.runIf(both)('root without a launcher', () => {
  it('gets an error with the remedy', async () => {
    const module = new URL('./embedded.ts', import.meta.url).href;
    const program = `
      const { startPostgres } = await import(${JSON.stringify(module)});
      const options = { dataDir: '/nonexistent/d', socketDir: '/nonexistent/s', asRoot: 'other-user' };
      await startPostgres(options).catch((error) => process.stdout.write(error.code + ' ' + error.message));`;
    // A root that maps only itself has no other account to use.
    const words = ['--user', '--map-root-user', process.execPath, '--input-type=module', '-e', program];
    const cwd = new URL('../../..', import.meta.url);
    const { stdout } = await promisify(execFile)('unshare', words, { cwd });
    expect(stdout).toMatch(/^EMBEDDED_POSTGRES_ROOT .*DATABASE_URL/);
    expect(existsSync('/nonexistent')).toBe(false);
  }, 30_000);
});
