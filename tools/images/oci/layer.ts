import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { z } from 'zod';
import { completeTree, encodeTar, type TarEntry } from './tar.ts';

const digest = z.string().regex(/^sha256:[0-9a-f]{64}$/);

const layer = z.object({
  /** Digest and size of the compressed layer. */
  digest,
  sizeBytes: z.int().positive(),
  /** Digest of the layer as tar. */
  diffId: digest,
});

/** A compressed layer that lies in the cache. */
export type Layer = z.output<typeof layer>;

export function sha256(...parts: readonly (Uint8Array | string)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

/** Writes a file so that no reader ever sees a part of it. */
export function writeWhole(path: string, content: Uint8Array | string): void {
  const draft = `${path}.${process.pid}.draft`;
  writeFileSync(draft, content);
  renameSync(draft, path);
}

/** Layers by what they are made from: a layer whose inputs did not change is not built again. */
export class LayerCache {
  readonly #keys: string;
  readonly #blobs: string;
  readonly #used = new Set<string>();

  constructor(folder: string) {
    this.#keys = join(folder, 'layers');
    this.#blobs = join(folder, 'blobs');
    mkdirSync(this.#keys, { recursive: true });
    mkdirSync(this.#blobs, { recursive: true });
  }

  /** The layer made from `inputs`, built by `build` when the cache lacks it. */
  async get(inputs: readonly string[], build: () => readonly TarEntry[]): Promise<Layer> {
    const found = this.find(inputs);
    if (found !== undefined) return found;
    const key = keyOf(inputs);
    const stored = await this.#store(join(this.#keys, key), build());
    this.#used.add(key).add(blobName(stored.digest));
    return stored;
  }

  /** The layer made from `inputs`, when the cache has it. */
  find(inputs: readonly string[]): Layer | undefined {
    const key = keyOf(inputs);
    const found = this.#find(join(this.#keys, key));
    if (found !== undefined) this.#used.add(key).add(blobName(found.digest));
    return found;
  }

  /** The file with the compressed bytes of a layer. */
  file({ digest }: Layer): string {
    return join(this.#blobs, blobName(digest));
  }

  /** Removes what this run had no use for. */
  prune(): void {
    for (const folder of [this.#keys, this.#blobs]) {
      for (const name of readdirSync(folder)) {
        if (!this.#used.has(name)) rmSync(join(folder, name));
      }
    }
  }

  #find(path: string): Layer | undefined {
    if (!existsSync(path)) return undefined;
    const found = layer.parse(JSON.parse(readFileSync(path, 'utf8')));
    return existsSync(join(this.#blobs, blobName(found.digest))) ? found : undefined;
  }

  async #store(path: string, entries: readonly TarEntry[]): Promise<Layer> {
    const tar = Buffer.concat(encodeTar(completeTree(entries)));
    const compressed = await promisify(gzip)(tar, { level: 9 });
    const stored: Layer = {
      digest: `sha256:${sha256(compressed)}`,
      sizeBytes: compressed.byteLength,
      diffId: `sha256:${sha256(tar)}`,
    };
    writeWhole(join(this.#blobs, blobName(stored.digest)), compressed);
    writeWhole(path, JSON.stringify(stored));
    return stored;
  }
}

function keyOf(inputs: readonly string[]): string {
  return `${sha256(JSON.stringify(inputs))}.json`;
}

function blobName(digest: string): string {
  return digest.replace('sha256:', '');
}
