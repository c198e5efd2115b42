import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyArchive } from '../../tools/images/oci/archive.ts';
import { run } from './kubectl.ts';
import { imageOf } from './versions.ts';

const folder = join(fileURLToPath(import.meta.url), '../../../dist/images');

async function load(command: string, paths: readonly string[]): Promise<void> {
  const [program = '', ...args] = command.split(' ');
  const { code, err } = await run(program, [...args, ...paths], { timeoutMs: 600_000 });
  if (code !== 0) throw new Error(`${command}: ${err}`);
}

/** The command in LOAD that imports archives, as in LOAD="cluster load"; undefined when all images exist already. */
export function loadCommand(): string | undefined {
  const command = process.env['LOAD'];
  return command === '' ? undefined : command;
}

/** Names of the images in dist/images. */
export function imageNames(): readonly string[] {
  const names = readdirSync(folder).flatMap((name) => (name.endsWith('.tar') ? [name.slice(0, -4)] : []));
  if (names.length === 0) throw new Error(`${folder} holds no images: run make images`);
  return names;
}

/** Imports the archives of some images unchanged. */
export function importImages(command: string, names: readonly string[]): Promise<void> {
  return load(
    command,
    names.map((name) => join(folder, `${name}.tar`)),
  );
}

/** Imports some images under another tag, which a cluster treats as another version. */
export async function importAs(version: string, command: string, names: readonly string[]): Promise<void> {
  const copies = mkdtempSync(join(tmpdir(), 'chancery-images-'));
  try {
    const paths = names.map((name) => {
      const copy = join(copies, `${name}.tar`);
      copyArchive(join(folder, `${name}.tar`), copy, imageOf(name, version));
      return copy;
    });
    await load(command, paths);
  } finally {
    rmSync(copies, { recursive: true });
  }
}
