import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import type { TarEntry } from '../oci/tar.ts';
import type { Architecture } from './debian.ts';
import { readTree } from './tree.ts';

const manifest = z.object({
  version: z.string(),
  dependencies: z.record(z.string(), z.string()).default({}),
});

export interface InstalledPackage {
  readonly name: string;
  readonly folder: string;
  readonly version: string;
  readonly dependencies: readonly string[];
}

/** What a package needs to run is neither of these. */
const notNeeded =
  /(?:^|\/)(?:(?:node_modules|tests?|e2e|examples|docs|benchmarks?|\.github|android|ios)\/|(?:test|bench)\.js$|CMakeLists\.txt$|\.[^/]+$|[\w-]+\.config\.js$)|\.(?:md|map|ts|mts|cts|c|cc|h|bare|yml)$/;

/**
 * The licences of the packages that a bundle was made from, which ask to be kept with every copy.
 *
 * @param sources paths of modules
 */
export function licencesOf(sources: readonly string[]): string {
  const folders = sources.flatMap((path) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path) ?? []);
  const texts = [...new Set(folders)].flatMap((folder) => {
    const name = folder.slice(folder.lastIndexOf('node_modules/') + 'node_modules/'.length);
    const files = readdirSync(folder).filter((file) =>
      /^(?:licen[cs]e|copying|notice)(?:\.\w+)?$/i.test(file),
    );
    return files
      .sort()
      .map((file) => `== ${name}: ${file}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`);
  });
  return texts.sort().join('\n');
}

/** @throws AppError unavailable IMAGES_PACKAGE when the package is not installed */
export function findPackage(from: string, name: string): InstalledPackage {
  for (let folder = from; ; folder = dirname(folder)) {
    const place = join(folder, 'node_modules', name);
    if (existsSync(join(place, 'package.json'))) {
      const { version, dependencies } = manifest.parse(
        JSON.parse(readFileSync(join(place, 'package.json'), 'utf8')),
      );
      return { name, folder: place, version, dependencies: Object.keys(dependencies) };
    }
    if (folder === dirname(folder)) break;
  }
  throw new AppError('unavailable', 'IMAGES_PACKAGE', `${name} is not installed; run npm ci`);
}

/**
 * Packages that cannot be part of a bundle (they load files of their own), with all they depend on, as
 * `app/node_modules`. Prebuilt libraries of other platforms stay behind.
 */
export function packageTree(root: string, names: readonly string[], architecture: Architecture): TarEntry[] {
  const found = new Map<string, InstalledPackage>();
  const visit = (from: string, name: string) => {
    const present = found.get(name);
    const installed = findPackage(from, name);
    if (present?.folder === installed.folder) return;
    if (present !== undefined) {
      const message = `an image would need two versions of ${name}`;
      throw new AppError('internal', 'IMAGES_PACKAGE_TWICE', message);
    }
    found.set(name, installed);
    for (const dependency of installed.dependencies) visit(installed.folder, dependency);
  };
  for (const name of names) visit(root, name);
  const platform = architecture === 'amd64' ? 'linux-x64' : 'linux-arm64';
  const keep = (path: string) =>
    !notNeeded.test(path) && (!path.startsWith('prebuilds/') || path.startsWith(`prebuilds/${platform}/`));
  return [...found.values()].flatMap(({ name, folder }) =>
    readTree(folder, `app/node_modules/${name}`, keep),
  );
}
