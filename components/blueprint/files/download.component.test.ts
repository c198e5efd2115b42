import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type MadeFile, makeFile } from '../testing/files.ts';
import { application, startPermits } from '../testing/permits.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;

let permits: Permits;
beforeAll(async () => {
  permits = await startPermits('blueprint_file_downloads');
});
afterAll(() => permits.world.stop());

describe.each([false, true])('a download (development mode: %s)', (devMode) => {
  let file: MadeFile;
  let txId: string;

  beforeEach(async () => {
    await permits.prepare(devMode);
    const place = { registerId: permits.at.registerId, senderWallet: permits.wallets.applicant };
    file = makeFile(
      place,
      [30_000, 500, 1].map((size) => randomBytes(size)),
    );
    for (const { body } of file.chunks)
      expect((await permits.world.call('POST', '/api/file-chunks', { token: 'user', body })).status).toBe(
        201,
      );
    const taken = await permits.execute(0, { ...application, plans: file.reference });
    expect(taken.status).toBe(devMode ? 200 : 202);
    await permits.world.runner.settle();
    txId = permits.sealed()[0]?.record.txId ?? '';
  });

  const get = (token: string, wallet: string, change: Record<string, string> = {}) => {
    const at = { register: permits.at.registerId, tx: txId, fileId: file.chunks[0]?.id ?? '', ...change };
    return permits.world.call('GET', `/api/files/${wallet}/${at.register}/${at.tx}/${at.fileId}`, {
      token,
    });
  };
  const refused = async (token: string, wallet: string, change: Record<string, string> = {}) => {
    const { status, body } = await get(token, wallet, change);
    return [status, body.code];
  };

  it('gives its readers the same bytes, with headers that no browser shows it by', async () => {
    const { applicant, office } = permits.wallets;
    for (const [token, wallet] of [
      ['user', applicant],
      ['admin', office],
    ] as const) {
      const sent = await get(token, wallet);
      expect(sent.status).toBe(200);
      expect(sent.bytes.equals(file.content)).toBe(true);
      expect(sent.headers).toMatchObject({
        'content-type': 'application/pdf',
        'content-length': '30501',
        'content-disposition': "attachment; filename*=UTF-8''plan.pdf",
        'content-security-policy': "default-src 'none'; sandbox",
        'x-content-type-options': 'nosniff',
        'cache-control': 'no-store',
      });
    }
  });

  it('is refused to those whom the field is not disclosed to', async () => {
    const { applicant, board, stranger } = permits.wallets;
    expect(await refused('designer', board)).toEqual([404, 'FILE_NOT_FOUND']);
    expect(await refused('stranger', stranger)).toEqual([403, 'NOT_A_RECIPIENT']);
    expect(await refused('stranger', applicant)).toEqual([403, 'WALLET_NOT_OWNED']);
    const others: [Record<string, string>, string][] = [
      [{ tx: 'e'.repeat(64) }, 'TX_NOT_FOUND'],
      [{ tx: 'x' }, 'TX_NOT_FOUND'],
      [{ register: 'e'.repeat(32) }, 'TX_NOT_FOUND'],
      [{ fileId: file.chunks[1]?.id ?? '' }, 'FILE_NOT_FOUND'],
      [{ fileId: 'x' }, 'FILE_NOT_FOUND'],
    ];
    for (const [change, code] of others)
      expect(await refused('user', applicant, change)).toEqual([404, code]);
  });

  it('is refused with an altered chunk and with a purged one', async () => {
    const { applicant } = permits.wallets;
    const chunkId = file.chunks[0]?.id ?? '';
    const change = (data: Buffer | null) =>
      permits.world.db.transact((tx) =>
        tx.updateTable('file_chunks').set({ encrypted_data: data }).where('chunk_id', '=', chunkId).execute(),
      );
    await change(Buffer.from(file.chunks[0]?.chunk ?? []).fill(7, 100, 110));
    expect(await refused('user', applicant)).toEqual([422, 'FILE_CORRUPT']);
    await change(null);
    expect(await refused('user', applicant)).toEqual([410, 'FILE_PURGED']);
  });
});
