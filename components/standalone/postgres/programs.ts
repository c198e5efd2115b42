import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { localError } from '../errors.ts';
import type { Binaries } from './binaries.ts';
import { type Launcher, works } from './launcher.ts';

/**
 * Gives the programs in a place where the launcher's account can run them: the package's own place if possible, else a
 * copy of some 60 MB in the first directory of `places` that the account can enter and run programs from. The copy is
 * kept for later starts and other servers, one a version; an incomplete one is made again.
 *
 * Errors: unavailable/EMBEDDED_POSTGRES_ROOT where no place is suitable.
 */
export function placePrograms(found: Binaries, launcher: Launcher, places: readonly string[]): Binaries {
  if (runs(launcher, found)) return found;
  const native = dirname(dirname(found.postgres));
  const failures: string[] = [];
  for (const place of new Set(places)) {
    const reason = tryPlace(native, place, launcher);
    if (reason === undefined) return binariesIn(copyPath(native, place));
    failures.push(reason);
  }
  throw localError(
    'EMBEDDED_POSTGRES_ROOT',
    `PostgreSQL's programs cannot be run by account ${launcher.account} (${failures.join('; ')}); ` +
      'set TMPDIR to a directory it can enter, start as another account or set DATABASE_URL',
  );
}

function binariesIn(native: string): Binaries {
  return { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
}

/** Whether the account can run the programs and read what initdb reads. */
function runs(launcher: Launcher, { initdb, postgres }: Binaries): boolean {
  const catalogue = join(dirname(dirname(postgres)), 'share', 'postgresql', 'postgres.bki');
  return (
    works(launcher, [postgres, '--version']) &&
    works(launcher, [initdb, '--version']) &&
    works(launcher, ['test', '-r', catalogue])
  );
}

/** Returns undefined when a copy in that place is usable, else the reason why it is not. */
function tryPlace(native: string, place: string, launcher: Launcher): string | undefined {
  const copy = copyPath(native, place);
  try {
    keepCopy(native, copy);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return runs(launcher, binariesIn(copy)) ? undefined : `${copy} cannot be run from`;
}

function copyPath(native: string, place: string): string {
  const { version } = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8')) as {
    version: string;
  };
  return join(place, `chancery-postgres-${version}-${process.arch}`);
}

function keepCopy(native: string, copy: string): void {
  if (existsSync(copy)) {
    checkOwner(copy);
    if (listTree(copy) === listTree(native)) return;
  }
  const staging = mkdtempSync(`${copy}.`);
  try {
    copyTree(native, join(staging, 'new'));
    if (existsSync(copy)) renameSync(copy, join(staging, 'old'));
    renameSync(join(staging, 'new'), copy);
  } catch (cause) {
    // Another process made the same copy in the meantime.
    if (!existsSync(copy)) throw cause;
    checkOwner(copy);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/** In a directory that every account may write to, only programs that this account made are run. */
function checkOwner(copy: string): void {
  const { uid, mode } = lstatSync(copy);
  const own = uid === process.getuid?.() && (mode & 0o170_022) === 0o040_000;
  if (!own) throw localError('EMBEDDED_POSTGRES_ROOT', `${copy} belongs to another account`);
}

/** Names and sizes of a directory's files, to detect files that a cleaner of temporary files removed. */
function listTree(root: string): string {
  const files = readdirSync(root, { recursive: true, withFileTypes: true }).filter(
    (entry) => !entry.isDirectory(),
  );
  const lines = files.map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return `${path.slice(root.length)} ${lstatSync(path).size}`;
  });
  return lines.sort().join('\n');
}

/** Copies files so that every account may read them, whatever the caller's umask. */
function copyTree(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) copyTree(source, target);
    else if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else copyFile(source, target);
  }
  chmodSync(to, 0o755);
}

function copyFile(source: string, target: string): void {
  const executable = (lstatSync(source).mode & 0o100) !== 0;
  copyFileSync(source, target);
  chmodSync(target, executable ? 0o755 : 0o644);
}
