import type { Random } from '#kit/testing/random.ts';
import type { Storage, StorageFile } from '../../disk/volume/storage.ts';
import type { EventQueue, ProcessHandle } from './event-queue.ts';

interface Content {
  /** The content that processes see. */
  seen: Buffer;
  /** The content that survives a power loss. */
  kept: Buffer;
  /** A larger buffer that begins with `seen`, so that an append does not copy the file. */
  room: Buffer;
}

export interface DiskOptions {
  /** Duration of a forced write in milliseconds, drawn for each. */
  forceMs(): number;
  /** A lying disk, which acknowledges a force without performing it. */
  readonly forgets?: boolean;
}

const sectorBytes = 512;
const nothing = Buffer.alloc(0);

/** The volume of one validator: names and bytes, with forced content apart from merely written content. */
export class Disk {
  readonly #options: DiskOptions;
  #seen = new Map<string, Content>();
  #kept = new Map<string, Content>();

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  /** A copy of the content that processes see, as a backup. */
  copy(): Disk {
    const copied = new Disk(this.#options);
    copied.#put(this.#seen);
    return copied;
  }

  /** The machine loses power: unforced writes survive completely, partly or not at all. */
  losePower(random: Random): void {
    for (const content of this.#seen.values()) content.kept = torn(content, random);
    const names = random.chance(0.5) ? this.#seen : this.#kept;
    const left = new Map(
      [...names].map(([path, content]) => [path, { seen: content.kept, kept: content.kept, room: nothing }]),
    );
    this.#put(left);
  }

  #put(files: ReadonlyMap<string, Content>): void {
    this.#seen = new Map();
    this.#kept = new Map();
    for (const [path, { seen }] of files) {
      const content = { seen, kept: seen, room: nothing };
      this.#seen.set(path, content);
      this.#kept.set(path, content);
    }
  }

  /** The disk as one process uses it. */
  storage(eventQueue: EventQueue, handle: ProcessHandle): Storage {
    const defer = () => eventQueue.wait(0.02, handle);
    const forced = () => eventQueue.wait(this.#options.forceMs(), handle);
    const find = (path: string) => {
      const content = this.#seen.get(path);
      if (content === undefined) throw new Error(`${path} is not there`);
      return content;
    };
    const file = (content: Content): StorageFile => ({
      write: async (bytes, at) => {
        write(content, bytes, at);
        await defer();
      },
      force: async () => {
        const { seen } = content;
        await forced();
        if (this.#options.forgets !== true) content.kept = seen;
      },
      close: defer,
    });
    return {
      prepare: defer,
      list: async (directory) => {
        await defer();
        const names = [...this.#seen.keys()].filter((path) => path.startsWith(`${directory}/`));
        return names.map((path) => path.slice(directory.length + 1));
      },
      read: async (path) => {
        await defer();
        return Buffer.from(find(path).seen);
      },
      open: async (path) => {
        await defer();
        return file(find(path));
      },
      create: async (path) => {
        const content = { seen: nothing, kept: nothing, room: nothing };
        this.#seen.set(path, content);
        await defer();
        return file(content);
      },
      truncate: async (path, sizeBytes) => {
        const content = find(path);
        content.seen = content.seen.subarray(0, sizeBytes);
        content.room = nothing;
        await defer();
      },
      rename: async (from, to) => {
        this.#seen.set(to, find(from));
        this.#seen.delete(from);
        await defer();
      },
      remove: async (path) => {
        this.#seen.delete(path);
        await defer();
      },
      syncDirectory: async () => {
        const names = new Map(this.#seen);
        await forced();
        if (this.#options.forgets !== true) this.#kept = names;
      },
    };
  }
}

/** Never changes bytes that `kept` and copies of a disk share with `seen`; only appended bytes are written in place. */
function write(content: Content, bytes: Uint8Array, at: number): void {
  const { seen } = content;
  const sizeBytes = Math.max(seen.length, at + bytes.length);
  if (at < seen.length || sizeBytes > content.room.length) {
    content.room = Buffer.alloc(2 * sizeBytes);
    seen.copy(content.room);
  }
  content.room.set(bytes, at);
  content.seen = content.room.subarray(0, sizeBytes);
}

/** Unforced sectors reach the disk individually, in any order; the file size may precede them. */
function torn({ seen, kept }: Content, random: Random): Buffer {
  if (seen === kept || seen.equals(kept)) return kept;
  const fate = random.next();
  if (fate < 0.3) return kept;
  if (fate < 0.5) return seen;
  const sizeBytes = random.whole(Math.min(kept.length, seen.length), Math.max(kept.length, seen.length));
  const after = Buffer.alloc(sizeBytes);
  for (let at = 0; at < sizeBytes; at += sectorBytes) {
    const source = random.chance(0.5) ? seen : kept;
    if (at < source.length) source.copy(after, at, at, Math.min(at + sectorBytes, source.length, sizeBytes));
  }
  return after;
}
