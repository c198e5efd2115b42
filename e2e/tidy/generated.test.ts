import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readCommonPasswords } from '../../components/tenant/sign-in/passwords/common-passwords.ts';
import { encodeWords } from '../../tools/passwords/encode.ts';
import { listCommonPasswords } from '../../tools/passwords/list.ts';
import { root } from './repository.ts';

function listGenerated(folder: string): Map<string, string> {
  const files = new Map<string, string>();
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (/\.(?:js|ts)$/.test(name)) files.set(name, readFileSync(join(folder, name), 'utf8'));
  }
  return files;
}

it('has the list of common passwords that its sources give', async () => {
  const own = readFileSync(join(root, 'tools/passwords/own-words.txt'), 'utf8').split('\n');
  const kept = readFileSync(join(root, 'components/tenant/sign-in/passwords/common-passwords.txt'), 'utf8');
  const words = await listCommonPasswords(own);
  expect(words.length).toBeGreaterThan(10_000);
  expect(kept).toBe(encodeWords(words));
  expect([...readCommonPasswords()]).toEqual(words);
});

it('has the code that the protos generate', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-protos-'));
  try {
    for (const name of ['buf.gen.yaml', 'buf.yaml']) cpSync(join(root, name), join(folder, name));
    cpSync(join(root, 'protos'), join(folder, 'protos'), {
      recursive: true,
      filter: (path) => !path.endsWith('/protos/gen'),
    });
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const bin = join(root, 'node_modules', '.bin');
    execFileSync(join(bin, 'buf'), ['generate'], {
      cwd: folder,
      stdio: 'pipe',
      env: { PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`, HOME: folder },
    });
    const [fresh, kept] = [
      listGenerated(join(folder, 'protos/gen')),
      listGenerated(join(root, 'protos/gen')),
    ];
    expect(fresh.size).toBeGreaterThan(4);
    expect([...kept.keys()].sort()).toEqual([...fresh.keys()].sort());
    expect([...fresh].filter(([name, text]) => kept.get(name) !== text).map(([name]) => name)).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}, 30_000);
