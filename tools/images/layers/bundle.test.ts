import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { execPath } from 'node:process';
import { afterAll, expect, it } from 'vitest';
import { bundleProgram } from './bundle.ts';

const folder = mkdtempSync(join(tmpdir(), 'bundle-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('bundles a program with its threads and lazy parts, and names what it requires', async () => {
  const program = resolve(import.meta.dirname, '../testing/program');
  const { files, outside, sources } = await bundleProgram(program, 'main.ts');
  expect(outside).toEqual(['sodium-native']);
  const names = ['main.ts', 'lazy.ts', 'title.ts', 'threads/pool.ts', 'threads/thread.ts'];
  expect(sources).toEqual(expect.arrayContaining(names.map((name) => join(program, name))));
  mkdirSync(join(folder, 'app'));
  for (const file of files) {
    if (file.kind === 'file') writeFileSync(join(folder, file.path), file.content);
  }
  expect(files.map(({ path }) => basename(path))).toEqual(expect.arrayContaining(['main.js', 'thread.js']));
  writeFileSync(join(folder, 'app', 'package.json'), '{"type":"module"}');
  const printed = execFileSync(execPath, ['main.js'], { cwd: join(folder, 'app'), encoding: 'utf8' });
  expect(printed).toBe('hello to 6 worker\n');
});
