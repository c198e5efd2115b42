import { posix } from 'node:path';

/** What goes into an archive. Paths are relative, with slashes, without `.` or `..`; modes are permission bits. */
export type TarEntry =
  | { readonly kind: 'file'; readonly path: string; readonly content: Uint8Array; readonly mode: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | { readonly kind: 'directory'; readonly path: string; readonly mode: number };

const BLOCK_BYTES = 512;
const NAME_BYTES = 100;
const PREFIX_BYTES = 155;
const typeFlags = { file: '0', link: '2', directory: '5' } as const;

/**
 * A POSIX ustar archive (IEEE 1003.1-1988, section 10.1.1) of the entries in their order: owner 0:0 and time 0, so the
 * bytes depend on paths, modes and contents alone. The parts, one after the other, are the archive.
 *
 * @throws Error for a path or link target that ustar has no room for, and for a path that leaves the archive
 */
export function encodeTar(entries: readonly TarEntry[]): Uint8Array[] {
  const parts = entries.flatMap((entry) => {
    const content = entry.kind === 'file' ? entry.content : new Uint8Array();
    return [header(entry, content.byteLength), content, new Uint8Array(padding(content.byteLength))];
  });
  return [...parts.filter((part) => part.byteLength > 0), new Uint8Array(2 * BLOCK_BYTES)];
}

/** The first file of an archive that `encodeTar` made, and where the next entry begins. */
export function firstFile(archive: Buffer): { readonly content: Buffer; readonly endBytes: number } {
  const sizeBytes = Number.parseInt(archive.toString('latin1', 124, 135), 8);
  const content = archive.subarray(BLOCK_BYTES, BLOCK_BYTES + sizeBytes);
  return { content, endBytes: BLOCK_BYTES + sizeBytes + padding(sizeBytes) };
}

/**
 * The entries by path, with the folders above them that nobody listed (0755).
 *
 * @throws Error when two entries have one path
 */
export function completeTree(entries: readonly TarEntry[]): TarEntry[] {
  const tree = new Map<string, TarEntry>();
  for (const entry of entries) {
    if (tree.has(entry.path)) throw new Error(`two entries of one layer are called ${entry.path}`);
    tree.set(entry.path, entry);
  }
  for (const { path } of entries) {
    for (let above = posix.dirname(path); above !== '.'; above = posix.dirname(above)) {
      if (!tree.has(above)) tree.set(above, { kind: 'directory', path: above, mode: 0o755 });
    }
  }
  return [...tree.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
}

function padding(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

function header(entry: TarEntry, sizeBytes: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const { name, prefix } = splitPath(entry.kind === 'directory' ? `${entry.path}/` : entry.path);
  const target = entry.kind === 'link' ? entry.target : '';
  if (Buffer.byteLength(target) > NAME_BYTES) throw new Error(`the link ${entry.path} points too far`);
  block.write(name, 0);
  block.write(octal(entry.kind === 'link' ? 0o777 : entry.mode, 8), 100);
  block.write(octal(0, 8), 108);
  block.write(octal(0, 8), 116);
  block.write(octal(sizeBytes, 12), 124);
  block.write(octal(0, 12), 136);
  block.write(' '.repeat(8), 148);
  block.write(typeFlags[entry.kind], 156);
  block.write(target, 157);
  block.write('ustar\u000000', 257);
  block.write(octal(0, 8), 329);
  block.write(octal(0, 8), 337);
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function octal(value: number, fieldBytes: number): string {
  const digits = value.toString(8).padStart(fieldBytes - 1, '0');
  if (digits.length >= fieldBytes)
    throw new Error(`${value} does not fit in ${fieldBytes} bytes of a header`);
  return digits;
}

function splitPath(path: string): { name: string; prefix: string } {
  if (path.startsWith('/') || path.split('/').some((part) => part === '.' || part === '..'))
    throw new Error(`${path} is not a path inside an archive`);
  if (Buffer.byteLength(path) <= NAME_BYTES) return { name: path, prefix: '' };
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) {
    const name = path.slice(at + 1);
    const prefix = path.slice(0, at);
    const fits = Buffer.byteLength(name) <= NAME_BYTES && Buffer.byteLength(prefix) <= PREFIX_BYTES;
    if (fits && name !== '') return { name, prefix };
  }
  throw new Error(`the path ${path} is too long for an archive`);
}
