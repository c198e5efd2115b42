import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { MAX_EXPORT_LINE_BYTES } from '#core/ledger/export/lines.ts';
import { at, owner } from '#core/ledger/governance/testing/scene.ts';
import { SealedRegister, sealTransaction } from '#core/ledger/verification/testing/sealed-register.ts';
import { USAGE } from './run.ts';
import { command } from './testing/command.ts';

const register = new SealedRegister(4);
register.seal(sealTransaction(owner, { n: 1 }, { type: 'Action', createdAt: at(30) }));
const file = register.lines().join('');
const genesis = register.dockets[0]?.docket.header.hash ?? '';

describe('chancery verify', () => {
  it('prints what a register contains, and exits with 0', async () => {
    const { code, out, err } = await command(file);
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain('Everything verifies.');
    expect(out).toContain('2, 2 transactions');
    expect(out).toContain(genesis);
    expect(out).toContain('cosigned by 4 of 4 validators');
  });

  it('reads lines whatever chunks they arrive in', async () => {
    for (const size of [1, 7, 100_000]) expect((await command(file, undefined, size)).code).toBe(0);
  });

  it('exits with 1 and prints the place of the first fault', async () => {
    const txId = register.dockets[1]?.docket.header.transactionIds[0];
    const { code, out, err } = await command(file.replace('"payload":"eyJuIjox', '"payload":"eyJuIjoy'));
    expect([code, out]).toEqual([1, '']);
    expect(err).toBe(
      `Does not verify: line 5, docket 1, transaction ${txId}: VAL_HASH_001: PayloadHash is not the hash of the payload (payload)\n`,
    );
  });

  it('exits with 1 for a truncated file', async () => {
    expect(await command(file.slice(0, -1))).toMatchObject({
      code: 1,
      err: expect.stringContaining('line 6: LINE_UNFINISHED'),
    });
    const lines = file.split('\n');
    const short = `${lines.slice(0, 3).join('\n')}\n`;
    expect((await command(short)).err).toContain('not whole');
  });

  it('requires the given genesis hash', async () => {
    expect((await command(file, ['verify', 'FILE', '--genesis', genesis])).code).toBe(0);
    const other = await command(file, ['verify', 'FILE', '--genesis', 'f'.repeat(64)]);
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining('GENESIS_MISMATCH') });
  });

  it('exits with 2 for a file that is no export, and for an unknown command', async () => {
    const unreadable = new AppError('not_found', 'FILE_UNREADABLE', 'no such file');
    for (const content of ['', 'hello', 'hello\n', '{"a":1}\n', unreadable]) {
      expect((await command(content)).code, String(content)).toBe(2);
    }
    for (const args of [
      ['verify'],
      ['verify', 'a', 'b'],
      ['x'],
      [],
      ['verify', 'FILE', '--genesis', 'x'],
      ['-x'],
    ]) {
      expect((await command(file, args)).code, args.join(' ')).toBe(2);
    }
    expect(await command(file, ['--help'])).toEqual({ code: 0, out: USAGE, err: '' });
  });

  it('refuses a line over the maximum length without buffering it', async () => {
    const long = `${'x'.repeat(MAX_EXPORT_LINE_BYTES + 1)}\n`;
    const { code, err } = await command(`${file.split('\n')[0]}\n${long}`, undefined, 1 << 20);
    expect([code, err]).toEqual([1, expect.stringContaining('line 2: LINE_TOO_LONG')]);
  });
});
