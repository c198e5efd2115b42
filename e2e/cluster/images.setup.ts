import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyArchive } from '../../tools/images/oci/archive.ts';
import { run } from './kubectl.ts';
import { imageOf, nextVersion, twice } from './versions.ts';

const folder = join(fileURLToPath(import.meta.url), '../../../dist/images');

async function importArchives(load: string, paths: readonly string[]): Promise<void> {
  const [program = '', ...args] = load.split(' ');
  const { code, err } = await run(program, [...args, ...paths], { timeoutMs: 600_000 });
  if (code !== 0) throw new Error(`${load}: ${err}`);
}

/**
 * Imports every archive of dist/images by the command in LOAD, as in LOAD="cluster load", and two of them in the next version
 * as well; without LOAD all are there already.
 */
export async function setup(): Promise<void> {
  const load = process.env['LOAD'];
  if (load === undefined || load === '') return;
  const archives = readdirSync(folder).filter((name) => name.endsWith('.tar'));
  if (archives.length === 0) throw new Error(`${folder} holds no images: run make images`);
  await importArchives(
    load,
    archives.map((name) => join(folder, name)),
  );
  await importNextVersions(load);
}

/** To a cluster another tag is another version, whatever it names. */
async function importNextVersions(load: string): Promise<void> {
  const copies = mkdtempSync(join(tmpdir(), 'chancery-images-'));
  try {
    const paths = twice.map((name) => {
      const copy = join(copies, `${name}.tar`);
      copyArchive(join(folder, `${name}.tar`), copy, imageOf(name, nextVersion));
      return copy;
    });
    await importArchives(load, paths);
  } finally {
    rmSync(copies, { recursive: true });
  }
}
