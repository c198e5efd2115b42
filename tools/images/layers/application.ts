import { existsSync, readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { sha256 } from '../oci/layer.ts';
import type { TarEntry } from '../oci/tar.ts';
import { bundleProgram } from './bundle.ts';
import type { Architecture } from './debian.ts';
import { licencesOf, packageTree } from './packages.ts';
import { fileEntry } from './tree.ts';

/** A bundled program with what it loads at run time, below `app/`. */
export interface Application {
  readonly entries: readonly TarEntry[];
  /** Distinguishes one content from another. */
  readonly key: string;
  /** The files that decide about it. */
  readonly sources: readonly string[];
}

export async function buildApplication(
  root: string,
  main: string,
  architecture: Architecture,
): Promise<Application> {
  const bundle = await bundleProgram(root, main);
  const modules = bundle.sources.filter((path) => isAbsolute(path) && existsSync(path));
  const entries = [
    ...bundle.files,
    fileEntry('app/LICENSE', readFileSync(join(root, 'LICENSE'))),
    fileEntry('app/THIRD-PARTY', licencesOf(modules)),
    fileEntry('app/package.json', '{"type":"module"}\n'),
    ...packageTree(root, bundle.outside, architecture),
  ];
  const contents = entries.map((entry) =>
    entry.kind === 'file' ? `${entry.path} ${entry.mode} ${sha256(entry.content)}` : JSON.stringify(entry),
  );
  return {
    entries,
    key: sha256(contents.sort().join('\n')),
    sources: [...modules, join(root, 'package.json'), join(root, 'package-lock.json')],
  };
}
