import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { AppError } from '#core/errors/errors.ts';
import type { TarEntry } from '../oci/tar.ts';
import { account } from './base.ts';
import { readTree } from './tree.ts';

/** Where images keep what V8 made of their modules. */
const folder = 'app/.compile-cache';

/** Settings of every process that shall use the cache; `portable` is what makes it independent of file times. */
export const compileCacheEnvironment = [
  `NODE_COMPILE_CACHE=/${folder}`,
  'NODE_COMPILE_CACHE_PORTABLE=1',
] as const;

/** A program without settings says so and ends with this status, when all its modules are loaded. */
const configurationError = 78;

/** Imports everything but main.js, which the second run loads. */
const importParts = `
  import { readdirSync } from 'node:fs';
  for (const name of readdirSync('.').sort())
    if (name.endsWith('.js') && name !== 'main.js') await import('./' + name);`;

/** The lower layers of an image unpacked, to run a program as a container does: same paths, account and libraries. */
export class ImageRoot {
  readonly #path: string;

  /** @param folder is kept for later runs; @param layers are compressed tar files, whose digests name the root */
  constructor(folder: string, layers: readonly { readonly digest: string; readonly file: string }[]) {
    this.#path = join(folder, layers.map(({ digest }) => digest.slice(7, 23)).join('-'));
    if (existsSync(this.#path)) return;
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    const draft = mkdtempSync(`${this.#path}.`);
    for (const { file } of layers)
      run('tar', ['--extract', '--gzip', `--file=${file}`, `--directory=${draft}`]);
    renameSync(draft, this.#path);
  }

  /**
   * What Node leaves behind when it has loaded the modules of a program: with it, the next start compiles nothing. The
   * seed of V8's hash tables is fixed while the cache is made, because it decides the order of what V8 writes; a
   * container draws its own seed as ever.
   *
   * @param files the program, below `app/`
   * @throws AppError internal IMAGES_PROGRAM when the program does not load
   */
  buildCompileCache(files: readonly TarEntry[]): TarEntry[] {
    const app = join(this.#path, 'app');
    rmSync(app, { recursive: true, force: true });
    try {
      for (const file of files) {
        if (file.kind !== 'file') continue;
        mkdirSync(dirname(join(this.#path, file.path)), { recursive: true });
        writeFileSync(join(this.#path, file.path), file.content);
      }
      this.#load(['--input-type=module', '--eval', importParts], 0);
      this.#load(['main.js'], configurationError);
      return readTree(join(this.#path, folder), folder);
    } finally {
      rmSync(app, { recursive: true, force: true });
    }
  }

  #load(words: readonly string[], expected: number): void {
    const { uid } = account;
    const inside = ['--user', `--map-user=${uid}`, `--map-group=${uid}`, `--root=${this.#path}`, '--wd=/app'];
    const env = Object.fromEntries(compileCacheEnvironment.map((pair) => pair.split('=')));
    run('unshare', [...inside, '/usr/bin/node', '--random-seed=1', ...words], { expected, env });
  }
}

interface Expectation {
  readonly expected: number;
  readonly env: NodeJS.ProcessEnv;
}

function run(program: string, words: readonly string[], { expected, env }: Partial<Expectation> = {}): void {
  const options = { encoding: 'utf8', timeout: 60_000, ...(env === undefined ? {} : { env }) } as const;
  const result = spawnSync(program, words, options);
  if (result.status === (expected ?? 0)) return;
  const reason = result.error?.message ?? `status ${result.status ?? result.signal}\n${result.stderr}`;
  throw new AppError('internal', 'IMAGES_PROGRAM', `${program} ${words.join(' ')} failed: ${reason}`);
}
