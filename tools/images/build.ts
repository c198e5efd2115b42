import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Program } from './catalogue.ts';
import { buildApplication } from './layers/application.ts';
import { account, baseEntries, packageEntries, packagesKey } from './layers/base.ts';
import { compileCacheEnvironment, ImageRoot } from './layers/compile-cache.ts';
import { type Architecture, type DebianPackage, fetchLocked } from './layers/debian.ts';
import { natsEntries, natsVersion } from './layers/nats.ts';
import { findPostgres, postgresEntries } from './layers/postgres.ts';
import { findRuntime, runtimeEntries } from './layers/runtime.ts';
import { type Image, type ImageConfig, type WrittenArchive, writeArchive } from './oci/archive.ts';
import { type Layer, LayerCache, sha256 } from './oci/layer.ts';
import { SourceRecords } from './oci/sources.ts';
import type { TarEntry } from './oci/tar.ts';
import { postgresEntry, type ServerName, servers, serverTags } from './servers.ts';

interface BuildOptions {
  /** Root of the repository. */
  readonly root: string;
  /** Folder of the archives; its `.cache` keeps layers and downloads. */
  readonly output: string;
  readonly architecture: Architecture;
  /** Tag of the images of this project's programs. */
  readonly version: string;
  readonly aptSources?: string | undefined;
}

/** Content of an archive besides the shared layers. */
interface Recipe {
  readonly name: string;
  readonly description: string;
  /** The tag of this project's programs when absent. */
  readonly tag?: string;
  readonly layers: readonly Layer[];
  readonly config?: Partial<Omit<ImageConfig, 'labels'>>;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface BuiltImage extends WrittenArchive {
  readonly name: string;
  readonly layers: readonly Layer[];
}

/** Packages of the PostgreSQL image only: initdb needs a shell. */
const shellPackages = ['dash'];

/** Builds images that share a base layer and a layer with Node. */
export class ImageBuilder {
  readonly #options: BuildOptions;
  readonly #layers: LayerCache;
  readonly #downloads: string;
  readonly #sources: SourceRecords;
  readonly #cache: string;
  readonly #tool: string;
  #packages: readonly DebianPackage[] | undefined;

  constructor(options: BuildOptions) {
    this.#options = options;
    this.#cache = join(options.output, '.cache');
    this.#layers = new LayerCache(this.#cache);
    this.#sources = new SourceRecords(join(this.#cache, 'sources'));
    this.#downloads = join(this.#cache, 'downloads');
    this.#tool = digestOfTool();
  }

  /** A program of this project. */
  async program({ name, description, main }: Program): Promise<BuiltImage> {
    const layers = [await this.#base(), await this.#runtime(), await this.#application(main)];
    return this.#write({ name, description, layers });
  }

  /** PostgreSQL for demonstrations, the same as in local mode. */
  async postgres(): Promise<BuiltImage> {
    const { root, architecture } = this.#options;
    const installed = findPostgres(root, architecture);
    const shell = this.#debian().filter((deb) => shellPackages.includes(deb.name));
    const server = await this.#layer([installed.name, installed.version, packagesKey(shell)], () => [
      ...postgresEntries(installed),
      ...shell.flatMap((deb) => packageEntries(deb, (path) => path === 'bin/dash')),
      { kind: 'link', path: 'bin/sh', target: 'dash' },
    ]);
    const entry = await this.#application(postgresEntry);
    const layers = [await this.#base(), await this.#runtime(), server, entry];
    return this.#server('postgres', `PostgreSQL ${installed.version} for demonstrations`, layers);
  }

  /** The message bus. */
  async nats(): Promise<BuiltImage> {
    const { architecture } = this.#options;
    const server = await this.#layer(['nats-server', natsVersion], () =>
      natsEntries(this.#downloads, architecture),
    );
    return this.#server('nats-server', `nats-server ${natsVersion}`, [await this.#base(), server]);
  }

  #server(name: ServerName, description: string, layers: readonly Layer[]): BuiltImage {
    const { config, labels = {} } = servers[name];
    return this.#write({
      name,
      description,
      tag: serverTags(this.#options.root)[name],
      layers,
      config,
      labels,
    });
  }

  /** Removes cached layers that this builder did not use. */
  prune(): void {
    this.#layers.prune();
  }

  #debian(): readonly DebianPackage[] {
    const { architecture, aptSources: sources } = this.#options;
    this.#packages ??= fetchLocked({ architecture, folder: this.#downloads, sources });
    return this.#packages;
  }

  #base(): Promise<Layer> {
    const packages = this.#debian().filter((deb) => !shellPackages.includes(deb.name));
    return this.#layer(['base', packagesKey(packages)], () => baseEntries(packages));
  }

  #runtime(): Promise<Layer> {
    const runtime = findRuntime(this.#options.root, this.#options.architecture);
    return this.#layer(runtime.inputs, () => runtimeEntries(runtime));
  }

  async #application(main: string): Promise<Layer> {
    const { root, architecture } = this.#options;
    const lower = [await this.#base(), await this.#runtime()];
    const inputsOf = (key: string) => ['application', key, ...lower.map(({ digest }) => digest)];
    const record = `${this.#tool} ${main}`;
    const known = this.#sources.find(record);
    const present = known === undefined ? undefined : this.#layers.find(this.#inputs(inputsOf(known)));
    if (present !== undefined) return present;
    const { entries, key, sources } = await buildApplication(root, main, architecture);
    this.#sources.save(record, key, sources);
    return this.#layer(inputsOf(key), () => [...entries, ...this.#compile(entries, lower)]);
  }

  /** Layer with the compile cache of a program on top of these layers. */
  #compile(entries: readonly TarEntry[], lower: readonly Layer[]): TarEntry[] {
    const layers = lower.map((layer) => ({ digest: layer.digest, file: this.#layers.file(layer) }));
    return new ImageRoot(join(this.#cache, 'root'), layers).buildCompileCache(entries);
  }

  #layer(inputs: readonly string[], build: () => readonly TarEntry[]): Promise<Layer> {
    return this.#layers.get(this.#inputs(inputs), build);
  }

  #inputs(inputs: readonly string[]): string[] {
    return [this.#tool, this.#options.architecture, ...inputs];
  }

  #write(recipe: Recipe): BuiltImage {
    const { version, architecture, output } = this.#options;
    const { name, description, tag = version, layers, config, labels } = recipe;
    const image: Image = {
      reference: `chancery.local/${name}:${tag}`,
      architecture,
      layers,
      config: {
        entrypoint: ['/usr/bin/node', '/app/main.js'],
        env: ['NODE_ENV=production', ...compileCacheEnvironment],
        user: `${account.uid}:${account.uid}`,
        workingDirectory: '/app',
        ...config,
        labels: {
          'org.opencontainers.image.title': name,
          'org.opencontainers.image.description': description,
          'org.opencontainers.image.version': tag,
          'org.opencontainers.image.vendor': 'Chancery',
          'org.opencontainers.image.licenses': 'Apache-2.0',
          ...labels,
        },
      },
    };
    const read = (layer: Layer) => readFileSync(this.#layers.file(layer));
    return { name, layers, ...writeArchive(join(output, `${name}.tar`), image, read) };
  }
}

/** Digest of the code that builds layers; a change of it rebuilds them. */
function digestOfTool(): string {
  const folder = import.meta.dirname;
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => /^(?:oci|layers)\/.*(?<!\.test)\.ts$/.test(path))
    .sort();
  return sha256(...files.map((path) => readFileSync(join(folder, path))));
}
