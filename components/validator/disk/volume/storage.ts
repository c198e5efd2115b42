import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, truncate } from 'node:fs/promises';

/**
 * The files of the log. A machine crash may lose exactly what was not forced: bytes until `force` of their file has
 * resolved, names (created, renamed, removed) until `syncDirectory` of their directory has.
 */
export interface Storage {
  /** Creates the directory, accessible to its owner only, unless it exists. */
  prepare(directory: string): Promise<void>;
  /** Names of a directory, in any order. */
  list(directory: string): Promise<string[]>;
  read(path: string): Promise<Buffer>;
  /** Opens an existing file for writing. */
  open(path: string): Promise<StorageFile>;
  /** Creates an empty file, replacing one of that name. */
  create(path: string): Promise<StorageFile>;
  truncate(path: string, sizeBytes: number): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  remove(path: string): Promise<void>;
  syncDirectory(directory: string): Promise<void>;
}

export interface StorageFile {
  /** Writes all bytes at a position, overwriting existing ones. */
  write(bytes: Uint8Array, at: number): Promise<void>;
  /** Resolves when all written bytes and the file size are on disk. */
  force(): Promise<void>;
  close(): Promise<void>;
}

/** The local file system. */
export function nodeStorage(): Storage {
  return {
    async prepare(directory) {
      await mkdir(directory, { recursive: true, mode: 0o700 });
    },
    list: (directory) => readdir(directory),
    read: (path) => readFile(path),
    open: async (path) => nodeFile(await open(path, 'r+')),
    create: async (path) => nodeFile(await open(path, 'w+', 0o600)),
    truncate: (path, sizeBytes) => truncate(path, sizeBytes),
    rename: (from, to) => rename(from, to),
    remove: (path) => rm(path),
    async syncDirectory(path) {
      const directory = await open(path, 'r');
      try {
        await directory.sync();
      } finally {
        await directory.close();
      }
    },
  };
}

function nodeFile(handle: FileHandle): StorageFile {
  return {
    async write(bytes, at) {
      let written = 0;
      while (written < bytes.length) {
        const left = bytes.length - written;
        const { bytesWritten } = await handle.write(bytes, written, left, at + written);
        written += bytesWritten;
      }
    },
    force: () => handle.datasync(),
    close: () => handle.close(),
  };
}
