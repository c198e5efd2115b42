import type { Storage, StorageFile } from '../disk/volume/storage.ts';

/** A file system error as Node reports it. */
export function fileError(code: string): Error {
  return Object.assign(new Error(`${code}: made by a test`), { code });
}

interface Content {
  /** The content that processes see: the page cache. */
  seen: Buffer;
  /** The content on the disk. */
  kept: Buffer;
  /** A force would write the seen content to the disk. */
  isDirty: boolean;
}

/**
 * An in-memory volume that can be full and whose forces can fail like those of a disk: what could not be written then
 * counts as clean, so that processes still see it and no later force writes it.
 */
export class FaultyVolume {
  readonly #files = new Map<string, Content>();
  /** Capacity in bytes. */
  capacityBytes = Number.POSITIVE_INFINITY;
  /** Called before each force, which fails with its error. */
  beforeForce: () => void = () => {};
  /** Number of calls, which exposes an endless retry loop. */
  calls = 0;

  get usedBytes(): number {
    let used = 0;
    for (const { seen } of this.#files.values()) used += seen.length;
    return used;
  }

  /** A copy of the content that processes see, as a backup. */
  copy(): FaultyVolume {
    const copied = new FaultyVolume();
    for (const [path, { seen }] of this.#files) {
      copied.#files.set(path, { seen, kept: seen, isDirty: false });
    }
    return copied;
  }

  /** The machine loses power: content that was only seen is lost. */
  losePower(): void {
    for (const content of this.#files.values()) {
      content.seen = content.kept;
      content.isDirty = false;
    }
  }

  storage(): Storage {
    const find = (path: string) => {
      this.calls += 1;
      const content = this.#files.get(path);
      if (content === undefined) throw fileError('ENOENT');
      return content;
    };
    return {
      prepare: async () => {},
      list: async (directory) =>
        [...this.#files.keys()].flatMap((path) =>
          path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : [],
        ),
      read: async (path) => Buffer.from(find(path).seen),
      open: async (path) => this.#file(find(path)),
      create: async (path) => {
        const content = { seen: Buffer.alloc(0), kept: Buffer.alloc(0), isDirty: false };
        this.#files.set(path, content);
        return this.#file(content);
      },
      truncate: async (path, sizeBytes) => {
        const content = find(path);
        content.seen = Buffer.from(content.seen.subarray(0, sizeBytes));
        content.isDirty = true;
      },
      rename: async (from, to) => {
        this.#files.set(to, find(from));
        this.#files.delete(from);
      },
      remove: async (path) => {
        this.#files.delete(path);
      },
      syncDirectory: async () => {},
    };
  }

  #file(content: Content): StorageFile {
    return {
      write: async (bytes, at) => {
        this.calls += 1;
        const growth = Math.max(0, at + bytes.length - content.seen.length);
        const room = Math.max(0, this.capacityBytes - this.usedBytes);
        const written = growth <= room ? bytes : bytes.subarray(0, Math.max(0, bytes.length - growth + room));
        const after = Buffer.alloc(Math.max(content.seen.length, at + written.length));
        content.seen.copy(after);
        after.set(written, at);
        content.seen = after;
        content.isDirty = true;
        if (written.length < bytes.length) throw fileError('ENOSPC');
      },
      force: async () => {
        this.calls += 1;
        const { isDirty } = content;
        content.isDirty = false;
        this.beforeForce();
        if (isDirty) content.kept = Buffer.from(content.seen);
      },
      close: async () => {},
    };
  }
}
