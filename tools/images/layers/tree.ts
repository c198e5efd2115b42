import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join, posix } from 'node:path';
import type { TarEntry } from '../oci/tar.ts';

/**
 * The files and links below a folder as entries below `prefix`, those whose path (from the folder, with slashes)
 * `keep` accepts. Modes are made one of two: 0755 for what its owner may execute, 0644 for the rest.
 */
export function readTree(
  folder: string,
  prefix: string,
  keep: (path: string) => boolean = () => true,
): TarEntry[] {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return paths
    .filter((path) => keep(path))
    .flatMap((path): TarEntry[] => {
      const source = join(folder, path);
      const stats = lstatSync(source);
      const target = posix.join(prefix, path);
      if (stats.isSymbolicLink()) return [{ kind: 'link', path: target, target: readlinkSync(source) }];
      if (!stats.isFile()) return [];
      return [fileEntry(target, readFileSync(source), (stats.mode & 0o100) !== 0)];
    });
}

export function fileEntry(path: string, content: Uint8Array | string, executable = false): TarEntry {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return { kind: 'file', path, content: bytes, mode: executable ? 0o755 : 0o644 };
}
