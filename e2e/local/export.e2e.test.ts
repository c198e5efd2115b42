import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createRegister,
  createWallet,
  submitThroughRegister,
  type Wallet,
  waitCount,
  waitOnline,
} from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { inParallel } from '../harness/wait.ts';

const here = installation();
const program = fileURLToPath(new URL('../../components/cli/main.ts', import.meta.url));

/** The command line program. */
async function chancery(args: readonly string[]) {
  const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, out, err };
}

describe('the export of a register', () => {
  const folder = mkdtempSync(join(tmpdir(), 'chancery-export-'));
  let owner: Wallet;
  let registerId = '';

  const path = () => `/api/registers/${registerId}/export`;
  const fetchExport = async (): Promise<Buffer> => {
    const { bytes } = await here.api.expect(200, 'GET', path(), { token: here.token() });
    return Buffer.from(bytes);
  };
  const fileOf = (name: string, bytes: Uint8Array): string => {
    const file = join(folder, name);
    writeFileSync(file, bytes);
    return file;
  };

  beforeAll(async () => {
    owner = await createWallet(here.api, here.token(), 'ED25519');
    registerId = await createRegister(here.api, here.token(), 'Exported', owner);
    await waitOnline(here.api, here.token(), registerId);
    const count = 40;
    await inParallel(Array.from({ length: count }), 8, (_, n) =>
      submitThroughRegister(here.api, here.token(), {
        registerId,
        sender: owner.walletAddress,
        payload: { n, text: 'x'.repeat(5_000) },
      }),
    );
    await waitCount(here.api, here.token(), registerId, count + 1);
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  test('it verifies offline, and one changed byte is found and named', async () => {
    const bytes = await fetchExport();
    const good = await chancery(['verify', fileOf('good.jsonl', bytes)]);
    expect(good).toMatchObject({ code: 0, err: '' });
    expect(good.out).toContain(`${registerId} "Exported"`);
    const places = Array.from({ length: 6 }, (_, n) => Math.floor((bytes.length * (n + 0.5)) / 6));
    for (const place of places) {
      const copy = Buffer.from(bytes);
      copy[place] = (copy[place] ?? 0) ^ 1;
      const line = bytes.subarray(0, place).filter((byte) => byte === 10).length + 1;
      const found = await chancery(['verify', fileOf('changed.jsonl', copy)]);
      expect(found.code, `byte ${place}`).toBe(1);
      // Where the byte was syntax, the line is no JSON and names no docket.
      expect(found.err).toMatch(new RegExp(`line ${line}(, docket |: EXPORT_INVALID)`));
    }
    const short = await chancery(['verify', fileOf('short.jsonl', bytes.subarray(0, -10))]);
    expect(short.code).toBe(1);
  });

  test('a file that is no export, or missing, is distinguished from one that does not verify', async () => {
    expect(await chancery(['verify', fileOf('other.jsonl', Buffer.from('{"a":1}\n'))])).toMatchObject({
      code: 2,
      err: expect.stringContaining('not that of an export'),
    });
    expect(await chancery(['verify', join(folder, 'absent')])).toMatchObject({
      code: 2,
      err: expect.stringContaining('ENOENT'),
    });
  });
});
