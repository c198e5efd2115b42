import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { sha256, writeWhole } from '../oci/layer.ts';

const lockedPackage = z.object({
  name: z.string().regex(/^[a-z0-9][a-z0-9+.-]+$/),
  version: z.string().regex(/^[\w.+:~-]+$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

const lock = z.object({
  release: z.string().regex(/^[a-z]+$/),
  packages: z.partialRecord(z.enum(['amd64', 'arm64']), z.array(lockedPackage).min(1)),
});

export type Architecture = 'amd64' | 'arm64';

/** A Debian package exactly as images hold it. */
export type LockedPackage = z.output<typeof lockedPackage>;

/** A downloaded package whose bytes are those of the lock. */
export interface DebianPackage extends LockedPackage {
  readonly file: string;
}

export interface DebianOptions {
  readonly architecture: Architecture;
  /** Folder of the private apt and of downloaded packages. */
  readonly folder: string;
  /** File of apt sources; by default the one of this Debian. */
  readonly sources?: string | undefined;
}

const lockFile = new URL('../debian.lock.json', import.meta.url);
const ownSources = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];

export function readLock(architecture: Architecture): readonly LockedPackage[] {
  const packages = lock.parse(JSON.parse(readFileSync(lockFile, 'utf8'))).packages[architecture];
  if (packages !== undefined) return packages;
  throw new AppError(
    'unavailable',
    'IMAGES_ARCHITECTURE',
    `debian.lock.json has no ${architecture} packages`,
  );
}

/**
 * The locked packages, downloaded where they are missing.
 *
 * @throws AppError unavailable IMAGES_DEBIAN when apt cannot bring a package, IMAGES_DEBIAN_CHANGED when its bytes are
 * not those of the lock
 */
export function fetchLocked(options: DebianOptions): DebianPackage[] {
  const locked = readLock(options.architecture);
  const downloads = join(options.folder, options.architecture);
  mkdirSync(downloads, { recursive: true });
  const found = findDownloads(downloads);
  const missing = locked.filter((wanted) => !found.has(wanted.sha256));
  if (missing.length > 0) {
    const apt = privateApt(options);
    apt(['update']);
    apt(['download', ...missing.map(({ name, version }) => `${name}=${version}`)], downloads);
    for (const [hash, file] of findDownloads(downloads)) found.set(hash, file);
  }
  return locked.map((wanted) => {
    const file = found.get(wanted.sha256);
    if (file !== undefined) return { ...wanted, file };
    const message = `${wanted.name} ${wanted.version} is not what debian.lock.json says`;
    throw new AppError('unavailable', 'IMAGES_DEBIAN_CHANGED', message);
  });
}

/** Replaces the versions of the lock by the newest ones of the release. */
export function refreshLock(options: DebianOptions): void {
  const text = readFileSync(lockFile, 'utf8');
  const { release, packages } = lock.parse(JSON.parse(text));
  const names = (packages[options.architecture] ?? readLock('amd64')).map(({ name }) => name);
  const downloads = join(options.folder, 'refresh');
  rmSync(downloads, { recursive: true, force: true });
  mkdirSync(downloads, { recursive: true });
  const apt = privateApt(options);
  apt(['update']);
  apt(['download', ...names.map((name) => `${name}/${release}*`)], downloads);
  const fresh = [...findDownloads(downloads)].map(([hash, file]) => ({
    name: packageField(file, 'Package'),
    version: packageField(file, 'Version'),
    sha256: hash,
  }));
  const sorted = fresh.sort((a, b) => (a.name < b.name ? -1 : 1));
  const next = { release, packages: { ...packages, [options.architecture]: sorted } };
  writeWhole(lockFile.pathname, `${JSON.stringify(next, null, 2)}\n`);
}

/** The control file of a package, or one field of it. */
export function packageField(file: string, ...fields: readonly string[]): string {
  return execFileSync('dpkg-deb', ['--field', file, ...fields], { encoding: 'utf8' }).trim();
}

function findDownloads(folder: string): Map<string, string> {
  const files = readdirSync(folder).filter((name) => name.endsWith('.deb'));
  return new Map(files.map((name) => [sha256(readFileSync(join(folder, name))), join(folder, name)]));
}

/** apt with state and cache of its own: needs no root, and neither reads nor changes what this system has installed. */
function privateApt(options: DebianOptions): (args: readonly string[], cwd?: string) => void {
  const sources = options.sources ?? ownSources.find((path) => existsSync(path));
  if (sources === undefined) {
    throw new AppError(
      'unavailable',
      'IMAGES_DEBIAN',
      'the base layer comes from Debian packages, and this system has no apt sources; name a file with --apt-sources',
    );
  }
  const state = join(options.folder, 'apt');
  for (const part of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(state, part), { recursive: true });
  writeFileSync(join(state, 'state', 'status'), '');
  const settings = [
    `Dir::State=${state}/state`,
    `Dir::State::status=${state}/state/status`,
    `Dir::Cache=${state}/cache`,
    `Dir::Etc::sourcelist=${sources}`,
    'Dir::Etc::sourceparts=-',
    `APT::Architecture=${options.architecture}`,
    `APT::Architectures=${options.architecture}`,
    // root, too, may keep the cache where no other account may look
    'APT::Sandbox::User=root',
  ].flatMap((setting) => ['-o', setting]);
  return (args, cwd = state) => {
    try {
      execFileSync('apt-get', ['--quiet=2', ...settings, ...args], { cwd, stdio: 'pipe', encoding: 'utf8' });
    } catch (cause) {
      const text = cause instanceof Error ? cause.message.trim() : 'unknown reason';
      const remedy = 'a version that has left the archive is replaced by `npm run images -- --refresh-base`';
      throw new AppError('unavailable', 'IMAGES_DEBIAN', `${text}\n${remedy}`, { cause });
    }
  };
}
