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

/** Paths of the archives, and the CRDs of the controller manager. */
export const archives: readonly string[] = [...published.map(({ name }) => name), nodeDriver].map((name) =>
  join(output, `${name}.tar`),
);
export const kindFiles: readonly string[] = kinds.files.map((file) => join(output, 'kinds', file));

/** The programs of SPIRE cannot be built on this machine. */
export class NotToBeHad extends Error {
  constructor(what: string, reason: string) {
    super(`${what} cannot be had here: ${reason}`);
    this.name = 'NotToBeHad';
  }
}

type Print = (line: string) => void;

const downloaded = z.object({
  Dir: z.string().optional(),
  Sum: z.string().optional(),
  Error: z.string().optional(),
});

/** Downloads a module and verifies its recorded checksum; returns its folder. */
async function download({ module, version, sum }: Pick<Published, 'module' | 'version' | 'sum'>) {
  const name = `${module}@${version}`;
  const result = await promisify(execFile)('go', ['mod', 'download', '-json', name], {
    cwd: output,
    env: { ...process.env, GOFLAGS: '-mod=mod', GOWORK: 'off' },
  }).catch((error: NodeJS.ErrnoException & { stdout?: string }) => {
    if (error.code === 'ENOENT') throw new NotToBeHad(name, 'there is no Go');
    return { stdout: error.stdout || JSON.stringify({ Error: error.message }) };
  });
  const { Dir, Sum, Error: problem } = downloaded.parse(JSON.parse(result.stdout));
  if (problem !== undefined || Dir === undefined) throw new NotToBeHad(name, problem ?? 'Go gave no folder');
  if (Sum !== sum) throw new NotToBeHad(name, `its content is ${Sum}, which should be ${sum}`);
  return Dir;
}

/** A copy of a module as main module, so that its own go.sum is used. */
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

/** Runs go build and prints the number of built packages every 15 s. */
async function compile(
  name: string,
  source: { readonly folder: string; readonly main: string },
  isPartlyC: boolean,
  print: Print,
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
  const progress = setInterval(() => print(`${name}: ${packages} packages built`), 15_000);
  const startedAt = performance.now();
  const { promise: ended, resolve, reject } = Promise.withResolvers<number | null>();
  child.once('error', reject).once('close', resolve);
  const code = await ended.finally(() => clearInterval(progress));
  if (code !== 0) throw new NotToBeHad(name, `go build says\n${last.join('\n')}`);
  print(`${name}: built after ${((performance.now() - startedAt) / 1_000).toFixed(0)} s`);
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

/** Runs the work unless it was done with the same inputs. */
async function once(name: string, inputs: string, work: () => Promise<void>, print: Print): Promise<void> {
  const record = join(binaries, `${name}.inputs`);
  const made = existsSync(record) && existsSync(join(output, `${name}.tar`));
  if (made && readFileSync(record, 'utf8') === inputs) return print(`${name}: exists`);
  rmSync(record, { force: true });
  await work();
  writeFileSync(record, inputs);
}

async function buildPublished(program: Published, cache: LayerCache, print: Print): Promise<void> {
  const folder = await sourceOf(program);
  print(`${program.name}: ${program.module} ${program.version} has the recorded checksum`);
  await compile(program.name, { folder, main: program.folder }, program.isPartlyC, print);
  await pack(cache, program.name);
}

async function copyKinds(): Promise<void> {
  const from = join(await sourceOf(kinds), kinds.folder);
  for (const file of kinds.files) cpSync(join(from, file), join(output, 'kinds', file));
}

/**
 * Fetches and builds SPIRE's server, agent and controller manager and the CSI driver, and writes an archive of each to
 * dist/spire. Existing archives are not built again.
 *
 * @param print receives progress, one line per call
 * @throws NotToBeHad without Go, network or a C compiler, or when a checksum differs
 */
export async function buildSpire(print: Print): Promise<void> {
  mkdirSync(binaries, { recursive: true });
  const cache = new LayerCache(join(output, '.cache'));
  for (const program of published) {
    const work = () => buildPublished(program, cache, print);
    await once(program.name, JSON.stringify(program), work, print);
  }
  const folder = join(import.meta.dirname, 'go');
  const files = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
  const work = async () => {
    await compile(nodeDriver, { folder, main: '' }, false, print);
    await pack(cache, nodeDriver);
  };
  await once(nodeDriver, sha256(...files), work, print);
  if (!kindFiles.every((file) => existsSync(file))) await copyKinds();
}
