import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { readServiceSecrets } from './service-secrets.ts';

let directory: string;
const secret = Buffer.alloc(32, 3).toString('base64url');
const put = async (name: string, text: string, mode = 0o600) => {
  await writeFile(join(directory, name), text);
  await chmod(join(directory, name), mode);
};

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'chy-secrets-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it('reads only files that are named by a client id', async () => {
  await put('service-wallet', `${secret}\n`);
  await put('validator-0', secret);
  await put('README', 'not a secret', 0o644);
  expect([...(await readServiceSecrets(directory))].sort()).toEqual([
    ['service-wallet', secret],
    ['validator-0', secret],
  ]);
  expect((await readServiceSecrets(undefined)).size).toBe(0);
});

it('refuses a secret that others can read and one that is malformed', async () => {
  await put('service-wallet', secret, 0o644);
  await expect(readServiceSecrets(directory)).rejects.toMatchObject({ code: 'SECRET_FILE_OPEN' });
  await put('service-wallet', 'short');
  await expect(readServiceSecrets(directory)).rejects.toMatchObject({ code: 'SECRET_FILE_MALFORMED' });
});
