import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { sha256, writeWhole } from './layer.ts';

const record = z.object({ key: z.string(), files: z.record(z.string(), z.string()) });

/** Remembers from which files a result was made, so that nothing has to be made to learn that nothing changed. */
export class SourceRecords {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  /** The key of what was made under this name, while every file is as it was then. */
  find(name: string): string | undefined {
    const path = this.#path(name);
    if (!existsSync(path)) return undefined;
    const { key, files } = record.parse(JSON.parse(readFileSync(path, 'utf8')));
    const unchanged = Object.entries(files).every(
      ([file, hash]) => existsSync(file) && hashOf(file) === hash,
    );
    return unchanged ? key : undefined;
  }

  save(name: string, key: string, files: readonly string[]): void {
    const hashes = Object.fromEntries(files.map((file) => [file, hashOf(file)]));
    writeWhole(this.#path(name), JSON.stringify({ key, files: hashes }));
  }

  #path(name: string): string {
    return join(this.#folder, `${sha256(name)}.json`);
  }
}

function hashOf(file: string): string {
  return sha256(readFileSync(file));
}
