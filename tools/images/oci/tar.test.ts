import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { sha256 } from './layer.ts';
import { completeTree, encodeTar, type TarEntry } from './tar.ts';

const folder = mkdtempSync(join(tmpdir(), 'tar-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Listed {
  readonly name: string;
  readonly kind: 'file' | 'link' | 'directory';
  readonly mode: number;
  readonly target: string;
  readonly sha256: string;
  readonly owner: readonly [number, number, number];
}

const reader = `
import hashlib, json, sys, tarfile
with tarfile.open(sys.argv[1], 'r:') as tar:
    kinds = {b'0': 'file', b'2': 'link', b'5': 'directory'}
    print(json.dumps([{'name': m.name, 'kind': kinds[m.type], 'mode': m.mode, 'target': m.linkname,
        'sha256': hashlib.sha256(tar.extractfile(m).read()).hexdigest() if m.isfile() else '',
        'owner': [m.uid, m.gid, m.mtime]} for m in tar.getmembers()]))`;

/** The archive as Python's tarfile reads it. */
function readByPython(entries: readonly TarEntry[]): Listed[] {
  const path = join(folder, 'archive.tar');
  writeFileSync(path, Buffer.concat(encodeTar(entries)));
  return JSON.parse(execFileSync('python3', ['-c', reader, path], { encoding: 'utf8' })) as Listed[];
}

function file(path: string, text = ''): TarEntry {
  return { kind: 'file', path, content: Buffer.from(text), mode: 0o644 };
}

const long = `${'d'.repeat(60)}/${'e'.repeat(80)}/${'f'.repeat(90)}`;

describe('a tar archive', () => {
  it('is read by Python as it was written', () => {
    const entries: TarEntry[] = [
      { kind: 'directory', path: 'tmp', mode: 0o1777 },
      { kind: 'file', path: 'usr/bin/node', content: Buffer.alloc(1025, 7), mode: 0o755 },
      { kind: 'link', path: 'lib64', target: 'usr/lib64' },
      file('empty'),
      file('block', 'x'.repeat(512)),
      file(long, 'deep'),
      file('größe', 'not ASCII'),
    ];
    expect(readByPython(entries)).toEqual(
      entries.map((entry) => ({
        name: entry.path,
        kind: entry.kind,
        mode: entry.kind === 'link' ? 0o777 : entry.mode,
        target: entry.kind === 'link' ? entry.target : '',
        sha256: entry.kind === 'file' ? sha256(entry.content) : '',
        owner: [0, 0, 0],
      })),
    );
  });

  it('keeps any contents', () => {
    const contents = fc.sample(fc.uint8Array({ maxLength: 1600 }), 60);
    const entries = contents.map(
      (content, index): TarEntry => ({ kind: 'file', path: `f${index}`, content, mode: 0o600 }),
    );
    expect(readByPython(entries).map((found) => found.sha256)).toEqual(contents.map((part) => sha256(part)));
  });

  it('refuses what it has no room for and what would leave it', () => {
    expect(() => encodeTar([file(`${'a'.repeat(101)}`)])).toThrow(/too long/);
    expect(() => encodeTar([file(`${'a'.repeat(200)}/b`)])).toThrow(/too long/);
    expect(() => encodeTar([file('/etc/passwd')])).toThrow(/not a path inside/);
    expect(() => encodeTar([file('a/../b')])).toThrow(/not a path inside/);
    expect(() => encodeTar([{ kind: 'link', path: 'l', target: 'x'.repeat(101) }])).toThrow(/too far/);
  });
});

describe('the tree of a layer', () => {
  it('has every folder, in an order that depends on paths alone', () => {
    const entries = [file('b/c/d'), file('a'), { kind: 'directory', path: 'b', mode: 0o700 } as const];
    const names = completeTree(entries).map(({ path }) => path);
    expect(names).toEqual(['a', 'b', 'b/c', 'b/c/d']);
    expect(completeTree([...entries].reverse())).toEqual(completeTree(entries));
    expect(completeTree(entries)[1]).toMatchObject({ mode: 0o700 });
  });

  it('refuses two entries with one path', () => {
    expect(() => completeTree([file('a'), file('a')])).toThrow(/two entries/);
  });
});
