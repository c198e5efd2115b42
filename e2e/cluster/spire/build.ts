import { execFile, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type Image, writeArchive } from '../../../tools/images/oci/archive.ts';
import { LayerCache, sha256 } from '../../../tools/images/oci/layer.ts';
import { imageOf, kinds, nodeDriver, type Published, published } from './programs.ts';

const root = join(import.meta.dirname, '../../..');
const output = join(root, 'dist/spire');
const sources = join(output, 'sources');
const binaries = join(output, 'bin');

/** Where the archives are, and the kinds of the controller manager. */
export const archives: readonly string[] = [...published.map(({ name }) => name), nodeDriver].map((name) =>
  join(output, `${name}.tar`),
);
export const kindFiles: readonly string[] = kinds.files.map((file) => join(output, 'kinds', file));

/** Programs of SPIRE that cannot be had on this machine. */
export class NotToBeHad extends Error {
  constructor(what: string, reason: string) {
    super(`${what} cannot be had here: ${reason}`);
    this.name = 'NotToBeHad';
  }
}

type Say = (line: string) => void;

const downloaded = z.object({
  Dir: z.string().optional(),
  Sum: z.string().optional(),
  Error: z.string().optional(),
});

/** The folder of a module's content, which is what it was when its sum was written down. */
async function download({ module, version, sum }: Pick<Published, 'module' | 'version' | 'sum'>) {
  const name = `${module}@${version}`;
  const asked = await promisify(execFile)('go', ['mod', 'download', '-json', name], {
    cwd: output,
    env: { ...process.env, GOFLAGS: '-mod=mod', GOWORK: 'off' },
  }).catch((error: NodeJS.ErrnoException & { stdout?: string }) => {
    if (error.code === 'ENOENT') throw new NotToBeHad(name, 'there is no Go');
    return { stdout: error.stdout || JSON.stringify({ Error: error.message }) };
  });
  const { Dir, Sum, Error: problem } = downloaded.parse(JSON.parse(asked.stdout));
  if (problem !== undefined || Dir === undefined) throw new NotToBeHad(name, problem ?? 'Go gave no folder');
  if (Sum !== sum) throw new NotToBeHad(name, `its content is ${Sum}, which should be ${sum}`);
  return Dir;
}

/** A copy of a module that Go takes for a program's own folder: its go.sum decides what is built. */
async function sourceOf(program: Pick<Published, 'module' | 'version' | 'sum'>): Promise<string> {
  const folder = join(sources, `${program.module.replaceAll('/', '-')}-${program.version}`);
  const from = await download(program);
  if (existsSync(join(folder, 'go.mod'))) return folder;
  mkdirSync(sources, { recursive: true });
  const draft = `${folder}.draft`;
  await promisify(execFile)('cp', ['-r', from, draft]);
  await promisify(execFile)('chmod', ['-R', 'u+w', draft]);
  await promisify(execFile)('mv', [draft, folder]);
  return folder;
}

/** go build, telling every 15 s how many packages are done. */
async function compile(
  name: string,
  source: { readonly folder: string; readonly main: string },
  isPartlyC: boolean,
  say: Say,
): Promise<void> {
  const linked = isPartlyC ? '-s -w -linkmode external -extldflags "-static"' : '-s -w';
  const tags = isPartlyC ? ['-tags', 'netgo,osusergo'] : [];
  const into = join(binaries, name);
  const args = ['build', '-v', '-trimpath', ...tags, '-ldflags', linked, '-o', into, `./${source.main}`];
  const env = { ...process.env, CGO_ENABLED: isPartlyC ? '1' : '0', GOFLAGS: '-mod=readonly', GOWORK: 'off' };
  const child = spawn('go', args, { cwd: source.folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const last: string[] = [];
  let packages = 0;
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (!/\s/.test(line)) packages++;
    last.push(line);
    last.splice(0, last.length - 10);
  });
  const progress = setInterval(() => say(`${name}: ${packages} packages built`), 15_000);
  const startedAt = performance.now();
  const { promise: ended, resolve, reject } = Promise.withResolvers<number | null>();
  child.once('error', reject).once('close', resolve);
  const code = await ended.finally(() => clearInterval(progress));
  if (code !== 0) throw new NotToBeHad(name, `go build says\n${last.join('\n')}`);
  say(`${name}: built after ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
}

/** The image of one static program. */
async function pack(cache: LayerCache, name: string): Promise<void> {
  const content = readFileSync(join(binaries, name));
  const layer = await cache.get([sha256(content)], () => [
    { kind: 'file', path: name, content, mode: 0o755 },
  ]);
  const image: Image = {
    reference: imageOf(name),
    architecture: arch() === 'arm64' ? 'arm64' : 'amd64',
    layers: [layer],
    config: { entrypoint: [`/${name}`], env: [], user: '65532:65532', workingDirectory: '/', labels: {} },
  };
  writeArchive(join(output, `${name}.tar`), image, (one) => readFileSync(cache.file(one)));
}

/** Does the work unless it was done from the same inputs. */
async function once(name: string, inputs: string, work: () => Promise<void>, say: Say): Promise<void> {
  const record = join(binaries, `${name}.inputs`);
  const made = existsSync(record) && existsSync(join(output, `${name}.tar`));
  if (made && readFileSync(record, 'utf8') === inputs) return say(`${name}: is there`);
  rmSync(record, { force: true });
  await work();
  writeFileSync(record, inputs);
}

async function buildPublished(program: Published, cache: LayerCache, say: Say): Promise<void> {
  const folder = await sourceOf(program);
  say(`${program.name}: ${program.module} ${program.version} is what it was`);
  await compile(program.name, { folder, main: program.folder }, program.isPartlyC, say);
  await pack(cache, program.name);
}

async function copyKinds(): Promise<void> {
  const from = join(await sourceOf(kinds), kinds.folder);
  for (const file of kinds.files) cpSync(join(from, file), join(output, 'kinds', file));
}

/**
 * Fetches and builds SPIRE's server, agent and controller manager and the CSI driver, and writes an archive of each to
 * dist/spire. What is there already is not built again.
 *
 * @param say hears of progress, a line at a time
 * @throws NotToBeHad without Go, network or a C compiler, or when a module is not what it was
 */
export async function buildSpire(say: Say): Promise<void> {
  mkdirSync(binaries, { recursive: true });
  const cache = new LayerCache(join(output, '.cache'));
  for (const program of published) {
    const work = () => buildPublished(program, cache, say);
    await once(program.name, JSON.stringify(program), work, say);
  }
  const folder = join(import.meta.dirname, 'go');
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  const work = async () => {
    await compile(nodeDriver, { folder, main: '' }, false, say);
    await pack(cache, nodeDriver);
  };
  await once(nodeDriver, sha256(...files), work, say);
  if (!kindFiles.every((file) => existsSync(file))) await copyKinds();
}
