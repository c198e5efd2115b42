import { mkdirSync, readFileSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join, resolve } from 'node:path';
import { stderr, stdout } from 'node:process';
import { parseArgs } from 'node:util';
import { AppError } from '#core/errors/errors.ts';
import { type BuiltImage, ImageBuilder } from './build.ts';
import { findPrograms } from './catalogue.ts';
import { type Architecture, refreshLock } from './layers/debian.ts';
import { serverNames } from './servers.ts';

const usage = `npm run images -- [NAME...] [--output DIR] [--apt-sources FILE] [--refresh-base]
Writes OCI archives of the named images, or of all, to dist/images.
`;

const foreign: readonly string[] = serverNames;

const root = resolve(import.meta.dirname, '..', '..');

function hostArchitecture(): Architecture {
  if (platform() === 'linux' && arch() === 'x64') return 'amd64';
  if (platform() === 'linux' && arch() === 'arm64') return 'arm64';
  throw new AppError('unavailable', 'IMAGES_PLATFORM', 'images are built on Linux, x64 or arm64');
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
  return version;
}

function megabytes(sizeBytes: number): string {
  return `${(sizeBytes / 1e6).toFixed(1)} MB`;
}

/** Compressed bytes of all layers, each counted once. */
function layersOnce(images: readonly BuiltImage[]): number {
  const layers = new Map(
    images.flatMap((image) => image.layers.map((layer) => [layer.digest, layer] as const)),
  );
  return [...layers.values()].reduce((total, { sizeBytes }) => total + sizeBytes, 0);
}

async function build(names: readonly string[], output: string, aptSources?: string): Promise<void> {
  mkdirSync(output, { recursive: true });
  const options = { root, output, architecture: hostArchitecture(), version: readVersion(), aptSources };
  const builder = new ImageBuilder(options);
  const steps = new Map<string, () => Promise<BuiltImage>>([
    ...findPrograms(root).map((program) => [program.name, () => builder.program(program)] as const),
    ['postgres', () => builder.postgres()],
    ['nats-server', () => builder.nats()],
  ]);
  const unknown = names.filter((name) => !steps.has(name));
  if (unknown.length > 0) {
    const message = `no image is called ${unknown.join(' or ')}; there are ${[...steps.keys()].join(', ')}`;
    throw new AppError('invalid', 'IMAGES_NAME', message);
  }
  const images: BuiltImage[] = [];
  for (const [name, step] of steps) {
    if (names.length > 0 && !names.includes(name)) continue;
    const startedAt = performance.now();
    const image = await step();
    images.push(image);
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    const size = megabytes(image.sizeBytes).padStart(9);
    stdout.write(`${name.padEnd(12)} ${size}  ${image.digest}  ${seconds.padStart(5)} s\n`);
  }
  if (names.length === 0) builder.prune();
  const own = images.filter(({ name }) => !foreign.includes(name));
  const all = `${images.length} images, shared layers once: ${megabytes(layersOnce(images))}`;
  stdout.write(`${all}; without ${foreign.join(' and ')}: ${megabytes(layersOnce(own))}\n`);
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      output: { type: 'string', default: join(root, 'dist', 'images') },
      'apt-sources': { type: 'string' },
      'refresh-base': { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    stdout.write(usage);
    return;
  }
  const output = resolve(values.output);
  const sources = values['apt-sources'];
  if (values['refresh-base']) {
    const folder = join(output, '.cache', 'downloads');
    for (const architecture of ['amd64', 'arm64'] as const) refreshLock({ architecture, folder, sources });
  }
  await build(positionals, output, sources);
}

try {
  await main();
} catch (error) {
  if (!(error instanceof Error)) throw error;
  stderr.write(`images: ${error instanceof AppError ? error.message : error.stack}\n`);
  process.exitCode = 1;
}
