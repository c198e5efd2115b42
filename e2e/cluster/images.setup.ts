import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './kubectl.ts';

const folder = join(fileURLToPath(import.meta.url), '../../../dist/images');

/** Imports every archive of dist/images by the command in LOAD, as in LOAD="cluster load"; without LOAD they are there already. */
export async function setup(): Promise<void> {
  const load = process.env['LOAD'];
  if (load === undefined || load === '') return;
  const archives = readdirSync(folder).filter((name) => name.endsWith('.tar'));
  if (archives.length === 0) throw new Error(`${folder} holds no images: run make images`);
  const [program = '', ...args] = load.split(' ');
  const paths = archives.map((name) => join(folder, name));
  const { code, err } = await run(program, [...args, ...paths], { timeoutMs: 600_000 });
  if (code !== 0) throw new Error(`${load}: ${err}`);
}
