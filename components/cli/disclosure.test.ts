import { describe, expect, it } from 'vitest';
import { MAX_DISCLOSURE_BYTES } from '#core/blueprint/disclosure/file.ts';
import { disclosureFile } from '#core/blueprint/disclosure/testing/shown.ts';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { run } from './run.ts';

const file = Buffer.from(disclosureFile());

async function command(chunks: readonly Uint8Array[], more: readonly string[] = []) {
  const said = { out: '', err: '' };
  const code = await run(['disclosure', 'FILE', ...more], {
    verifier: createVerifier(nodeEd25519()),
    read: async function* () {
      yield* chunks;
    },
    print: (text) => {
      said.out += text;
    },
    complain: (text) => {
      said.err += text;
    },
  });
  return { code, ...said };
}

describe('chancery disclosure', () => {
  it('prints what was shown and to which wallets, and exits with 0', async () => {
    const { code, out, err } = await command([file.subarray(0, 100), file.subarray(100)]);
    expect([code, err]).toEqual([0, '']);
    for (const part of [
      '"siteReference": "AB-1234"',
      'w1applicant, w1office',
      'action 0',
      'docket 1',
      '1 other group',
    ]) {
      expect(out).toContain(part);
    }
  });

  it('refuses a changed byte, and says where', async () => {
    const at = file.indexOf('AB-1234');
    const changed = Buffer.from(file);
    changed[at] = 0x43;
    const { code, out, err } = await command([changed]);
    expect([code, out]).toEqual([1, '']);
    expect(err).toContain('/group: COMMITMENT_MISMATCH');
    expect((await command([Buffer.from('{}')])).err).toContain('DISCLOSURE_MALFORMED');
  });

  it('demands the key of the checkpoint that it is given', async () => {
    const key = /"checkpointKey":"([^"]+)"/.exec(file.toString())?.[1] ?? '';
    expect((await command([file], ['--key', key])).code).toBe(0);
    const other = await command([file], ['--key', `${key}x`]);
    expect([other.code, other.err.includes('/checkpointKey: KEY_MISMATCH')]).toEqual([1, true]);
  });

  it('exits with 2 for a file that is too large, and for options of another command', async () => {
    const chunk = Buffer.alloc(MAX_DISCLOSURE_BYTES / 2 + 1);
    expect((await command([chunk, chunk])).code).toBe(2);
    expect((await command([file], ['--genesis', 'a'.repeat(64)])).err).toContain(
      '--genesis is not understood',
    );
  });
});
