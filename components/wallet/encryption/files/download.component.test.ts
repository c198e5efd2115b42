import { randomBytes, randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { finished } from 'node:stream/promises';
import { ed25519 } from '@noble/curves/ed25519.js';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  type DownloadWorld,
  download,
  failuresWith,
  holder,
  type MadeWallet,
  pathOf,
  readerOf,
  refusedWith,
  seal,
  startDownloadWorld,
  upload,
} from '../../testing/download-world.ts';
import { administrator, openReplica, person } from '../../testing/fixture.ts';
import { createHttpClient } from '../../testing/http-client.ts';
import { sealAction, sealPlainAction } from '../../testing/sealed-file.ts';

const MiB = 1024 * 1024;
let world: DownloadWorld;
let stores: DownloadWorld['stores'];

beforeAll(async () => {
  world = await startDownloadWorld('wallet_download');
  stores = world.stores;
});
afterAll(() => world.stop());

describe.each(['NISTP256', 'ED25519', 'RSA'])('a recipient with a wallet of %s', (keyType) => {
  test('downloads the file, byte for byte, with headers that no browser shows it by', async () => {
    const reader = await holder(world, `reader ${keyType}`, keyType);
    const parts = [randomBytes(300_000), randomBytes(10), randomBytes(1)];
    const { reference } = upload(world, parts, { fileName: "Bauplan «Ä» 'a'(1).pdf" });
    const other = await holder(world, `other ${keyType}`);
    const actionTxId = await seal(world, [readerOf(other), readerOf(reader)], { plan: reference });
    const response = await download(world, `reader ${keyType}`, reader.walletAddress, { actionTxId });
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      'content-type': 'application/pdf',
      'content-length': '300011',
      'content-disposition': "attachment; filename*=UTF-8''Bauplan%20%C2%AB%C3%84%C2%BB%20%27a%27%281%29.pdf",
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cache-control': 'no-store',
    });
    expect((await buffer(response)).equals(Buffer.concat(parts))).toBe(true);
  });
});

test('a file of 25 MiB in seven chunks, in a list, is found by a pointer', async () => {
  const reader = await holder(world, 'large');
  const parts = Array.from({ length: 7 }, (_, n) => randomBytes(n < 6 ? 4 * MiB : MiB));
  const [one, two] = [
    upload(world, [Buffer.from('one')]),
    upload(world, parts, { contentType: 'text/html; x=1' }),
  ];
  const data = { plans: { files: [one.reference, two.reference] } };
  const actionTxId = await seal(world, [readerOf(reader)], data);
  const query = { actionTxId, fieldName: '/plans/files', fileIndex: '1' };
  const response = await download(world, 'large', reader.walletAddress, query);
  expect(response.headers['content-type']).toBe('application/octet-stream');
  expect((await buffer(response)).equals(Buffer.concat(parts))).toBe(true);
});

test('the key that the primary kid names opens too; an empty file is a file', async () => {
  const reader = await holder(world, 'primary', 'ED25519');
  const { reference } = upload(world, [Buffer.alloc(0)]);
  const publicKey = Buffer.from(ed25519.utils.toMontgomery(Buffer.from(reader.publicKey, 'base64'))).toString(
    'base64',
  );
  const kid = reader.walletAddress;
  const actionTxId = await seal(world, [{ kid, keyType: 'ED25519', publicKey }], { plan: reference });
  const response = await download(world, 'primary', reader.walletAddress, { actionTxId });
  expect([response.statusCode, (await buffer(response)).length]).toEqual([200, 0]);
});

describe('content that is not encrypted', () => {
  const sealed = (data: object, parties: Parameters<typeof sealPlainAction>[2], change = {}) => {
    const action = sealPlainAction(world.registerId, data, parties, change);
    stores.sealed.set(action.txId, action);
    return action.txId;
  };

  test('gives its file to the sender and to the recipients, byte for byte', async () => {
    const [sender, recipient] = [await holder(world, 'plain sender'), await holder(world, 'plain recipient')];
    const parts = [randomBytes(300_000), randomBytes(10)];
    const { reference } = upload(world, parts);
    const actionTxId = sealed(
      { plan: reference },
      { senderAddress: sender.walletAddress, recipients: ['w1other', recipient.walletAddress] },
    );
    for (const [who, { walletAddress }] of [
      ['plain sender', sender],
      ['plain recipient', recipient],
    ] as const) {
      const response = await download(world, who, walletAddress, { actionTxId });
      expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'application/pdf']);
      expect((await buffer(response)).equals(Buffer.concat(parts))).toBe(true);
    }
  });

  test('is refused to other wallets, whose persons may not use those of the parties', async () => {
    const sender = await holder(world, 'plain owner');
    const stranger = await holder(world, 'plain stranger');
    const { reference } = upload(world, [randomBytes(10)]);
    const parties = { senderAddress: sender.walletAddress };
    const actionTxId = sealed({ plan: reference }, parties);
    const refused = (who: string, address: string, query: object = {}) =>
      refusedWith(world, who, address, { actionTxId, ...query });
    expect(await refused('plain stranger', stranger.walletAddress)).toEqual([403, 'NOT_A_RECIPIENT']);
    expect(await refused('plain stranger', sender.walletAddress)).toEqual([403, 'WALLET_ACCESS_DENIED']);
    expect(await refused('plain owner', sender.walletAddress, { fieldName: 'other' })).toEqual([
      404,
      'FILE_NOT_FOUND',
    ]);
    const other = sealed({ plan: reference }, parties, { contentEncoding: 'gzip' });
    expect(await refused('plain owner', sender.walletAddress, { actionTxId: other })).toEqual([
      403,
      'NOT_A_RECIPIENT',
    ]);
  });

  test('with a chunk that was altered is corrupt', async () => {
    const sender = await holder(world, 'plain altered');
    const { reference, ids } = upload(world, [randomBytes(10)]);
    stores.chunks.set(ids[0] ?? '', randomBytes(50));
    const actionTxId = sealed({ plan: reference }, { senderAddress: sender.walletAddress });
    expect(await refusedWith(world, 'plain altered', sender.walletAddress, { actionTxId })).toEqual([
      422,
      'FILE_CORRUPT',
    ]);
  });
});

describe('what is refused', () => {
  let reader: MadeWallet;
  let stranger: MadeWallet;

  beforeAll(async () => {
    reader = await holder(world, 'reader');
    stranger = await holder(world, 'stranger');
    world.client.callers.set(
      'service',
      person({ kind: 'service', tier: 'service', platformUserId: undefined }),
    );
    world.client.callers.set(
      'delegated',
      person({
        kind: 'service',
        tier: 'service',
        platformUserId: undefined,
        delegation: {
          userId: 'u',
          platformUserId: world.client.callers.get('reader')?.platformUserId,
          organizationId: undefined,
          roles: [],
          sessionId: undefined,
        },
      }),
    );
  });

  const refused = (query: Record<string, string>, who = 'reader', address = reader.walletAddress) =>
    refusedWith(world, who, address, query);

  test('a wallet that is no recipient, the wallet of another person, and tokens of services', async () => {
    const { reference } = upload(world, [randomBytes(10)]);
    const actionTxId = await seal(world, [readerOf(reader)], { plan: reference });
    expect(await refused({ actionTxId }, 'stranger', stranger.walletAddress)).toEqual([
      403,
      'NOT_A_RECIPIENT',
    ]);
    expect(await refused({ actionTxId }, 'stranger')).toEqual([403, 'WALLET_ACCESS_DENIED']);
    expect(await refused({ actionTxId }, 'service')).toEqual([403, 'PERSON_REQUIRED']);
    expect((await refused({ actionTxId }, 'delegated'))[0]).toBe(403);
    expect((await refused({ actionTxId }, 'unknown'))[0]).toBe(401);
    expect(await refused({ actionTxId }, 'reader', 'w1nothing')).toEqual([404, 'WALLET_NOT_FOUND']);
    const admin = administrator(randomUUID());
    world.client.callers.set('admin', admin);
    expect((await refused({ actionTxId }, 'admin'))[0]).toBe(403);
  });

  test('an unknown transaction, one of another register, an unencrypted one, an unknown field', async () => {
    const { reference } = upload(world, [randomBytes(10)]);
    const actionTxId = await seal(world, [readerOf(reader)], {
      plan: reference,
      text: 'x',
      broken: { ...reference, size: -1 },
    });
    expect(await refused({ actionTxId: 'e'.repeat(64) })).toEqual([404, 'TX_NOT_FOUND']);
    expect(await refused({ actionTxId: 'x' })).toEqual([404, 'TX_NOT_FOUND']);
    expect(await refused({ actionTxId, registerId: '1'.repeat(32) })).toEqual([404, 'TX_NOT_FOUND']);
    for (const query of [
      { fieldName: 'other' },
      { fieldName: 'text' },
      { fieldName: 'broken' },
      { fieldName: '/plan/fileKey' },
      { fileIndex: '1' },
    ]) {
      expect(await refused({ actionTxId, ...query })).toEqual([404, 'FILE_NOT_FOUND']);
    }
    for (const query of [{ fileIndex: '-1' }, { fileIndex: 'x' }, { fieldName: '' }]) {
      expect(await refused({ actionTxId, ...query })).toEqual([400, 'INVALID_REQUEST']);
    }
    const plain = await sealAction({ registerId: world.registerId, groups: [] });
    stores.sealed.set(plain.txId, plain);
    expect(await refused({ actionTxId: plain.txId })).toEqual([403, 'NOT_A_RECIPIENT']);
  });

  test('a group that is copied from another place, of another kind, or for another key', async () => {
    const { reference } = upload(world, [randomBytes(10)]);
    const data = { plan: reference };
    const own = readerOf(reader);
    for (const actionTxId of [
      await seal(world, [own], data, { aad: 'elsewhere' }),
      await seal(world, [own], data, { header: { typ: 'JWE' } }),
      await seal(world, [own], data, { header: { zip: 'DEF' } }),
      await seal(world, [{ ...readerOf(stranger), kid: own.kid }], data),
    ]) {
      expect(await refused({ actionTxId })).toEqual([422, 'DECRYPT_FAILED']);
    }
  });

  test('bytes that the record does not stand for', async () => {
    const { reference } = upload(world, [randomBytes(10)]);
    const [one, two] = await Promise.all(
      [0, 1].map(() => seal(world, [readerOf(reader)], { plan: reference })),
    );
    const [first, second] = [stores.sealed.get(one ?? ''), stores.sealed.get(two ?? '')];
    if (first === undefined || second === undefined) throw new Error('not sealed');
    stores.sealed.set(first.txId, { ...first, payload: second.payload });
    expect(await refused({ actionTxId: first.txId })).toEqual([404, 'TX_NOT_FOUND']);
    stores.sealed.set(first.txId, second);
    expect(await refused({ actionTxId: first.txId })).toEqual([404, 'TX_NOT_FOUND']);
  });

  test('a key that a wallet of RSA does not have', async () => {
    const rsa = await holder(world, 'rsa', 'RSA');
    const kid = `${rsa.walletAddress}#platform:payload-encryption`;
    const actionTxId = await seal(world, [{ ...readerOf(rsa), kid }], { plan: {} });
    expect(await refused({ actionTxId }, 'rsa', rsa.walletAddress)).toEqual([403, 'NOT_A_RECIPIENT']);
  });

  test('a locked wallet, and a deleted one', async () => {
    const locked = await holder(world, 'locked');
    const plan = upload(world, [randomBytes(1)]).reference;
    const actionTxId = await seal(world, [readerOf(locked)], { plan });
    for (const [state, status, code] of [
      ['Locked', 423, 'WALLET_LOCKED'],
      ['Deleted', 410, 'WALLET_DELETED'],
    ] as const) {
      await world.replica.db.transact((tx) =>
        sql`UPDATE wallets SET status = ${state} WHERE id = ${locked.id}`.execute(tx),
      );
      expect(await refused({ actionTxId }, 'locked', locked.walletAddress)).toEqual([status, code]);
    }
  });

  test('a purged file is gone, an unknown chunk is not found, an altered one is corrupt', async () => {
    const [gone, lost, altered] = [
      upload(world, [randomBytes(5)]),
      upload(world, [randomBytes(5)]),
      upload(world, [randomBytes(5)]),
    ];
    stores.purged.add(gone.ids[0] ?? '');
    stores.chunks.delete(lost.ids[0] ?? '');
    const id = altered.ids[0] ?? '';
    stores.chunks.set(id, Buffer.from(stores.chunks.get(id) ?? []).fill(7, 30, 31));
    const txOf = (file: typeof gone) => seal(world, [readerOf(reader)], { plan: file.reference });
    expect(await refused({ actionTxId: await txOf(gone) })).toEqual([410, 'FILE_PURGED']);
    expect(await refused({ actionTxId: await txOf(lost) })).toEqual([404, 'FILE_NOT_FOUND']);
    const before = await failuresWith(world, 'FILE_CORRUPT');
    expect(await refused({ actionTxId: await txOf(altered) })).toEqual([422, 'FILE_CORRUPT']);
    expect(await failuresWith(world, 'FILE_CORRUPT')).toBe(before + 1);
  });

  test.each([
    ['hash', { hash: `sha256:${'0'.repeat(64)}` }],
    ['size, too small', { size: 9 }],
    ['size, too large', { size: 11 }],
    ['upload', { uploadId: randomUUID() }],
    ['key', { fileKey: randomBytes(32).toString('base64') }],
    ['salt', { salt: randomBytes(32).toString('base64') }],
  ])('a reference with another %s', async (_name, change) => {
    const { reference } = upload(world, [randomBytes(10)], change);
    const actionTxId = await seal(world, [readerOf(reader)], { plan: reference });
    expect(await refused({ actionTxId })).toEqual([422, 'FILE_CORRUPT']);
  });

  test('HEAD', async () => {
    const response = await world.app.inject({
      method: 'HEAD',
      url: pathOf(world, reader.walletAddress, { actionTxId: 'e'.repeat(64) }),
      headers: { authorization: 'reader' },
    });
    expect(response.statusCode).toBe(405);
  });
});

describe('after the answer has begun', () => {
  test.each([
    ['an altered chunk', 'FILE_CORRUPT', (id: string) => void stores.chunks.set(id, randomBytes(50))],
    ['a purged chunk', 'FILE_PURGED', (id: string) => void stores.purged.add(id)],
  ])('%s aborts the connection and is counted', async (name, code, spoil) => {
    const reader = await holder(world, `aborted by ${name}`);
    const file = upload(world, [randomBytes(1000), randomBytes(1000), randomBytes(1000)]);
    spoil(file.ids[2] ?? '');
    const actionTxId = await seal(world, [readerOf(reader)], { plan: file.reference });
    const before = await failuresWith(world, code);
    const response = await download(world, `aborted by ${name}`, reader.walletAddress, { actionTxId });
    expect([response.statusCode, response.headers['content-length']]).toEqual([200, '3000']);
    await expect(buffer(response)).rejects.toThrow('aborted');
    expect(await failuresWith(world, code)).toBe(before + 1);
  });

  test('a hash that is not that of the file withholds its last chunk', async () => {
    const reader = await holder(world, 'hash');
    const hash = `sha256:${'0'.repeat(64)}`;
    const [one, two] = [1, 2].map((count) => upload(world, Array(count).fill(randomBytes(1000)), {}, hash));
    const txOf = (file: typeof one) => seal(world, [readerOf(reader)], { plan: file?.reference });
    const actionTxId = await txOf(one);
    expect(await refusedWith(world, 'hash', reader.walletAddress, { actionTxId })).toEqual([
      422,
      'FILE_CORRUPT',
    ]);
    const response = await download(world, 'hash', reader.walletAddress, { actionTxId: await txOf(two) });
    expect(response.statusCode).toBe(200);
    let received = 0;
    response.on('data', (bytes: Buffer) => {
      received += bytes.length;
    });
    await expect(finished(response)).rejects.toThrow('aborted');
    expect(received).toBeLessThanOrEqual(1000);
  });

  test('a caller has two downloads at most, and a reader that disconnects frees its slot', async () => {
    const reader = await holder(world, 'greedy');
    const file = upload(world, [randomBytes(4 * MiB), randomBytes(4 * MiB)]);
    const actionTxId = await seal(world, [readerOf(reader)], { plan: file.reference });
    const open = () => download(world, 'greedy', reader.walletAddress, { actionTxId });
    const running = [await open(), await open()];
    expect(running.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    const third = await open();
    expect([third.statusCode, third.headers['retry-after']]).toEqual([429, '10']);
    third.resume();
    for (const response of running) response.destroy();
    await waitFor(async () => {
      const response = await open();
      response.destroy();
      return response.statusCode === 200;
    });
  });

  test('a service that is away is an answer of 503', async () => {
    const reader = await holder(world, 'away');
    const file = upload(world, [randomBytes(10)]);
    const actionTxId = await seal(world, [readerOf(reader)], { plan: file.reference });
    stores.away = true;
    try {
      expect(await refusedWith(world, 'away', reader.walletAddress, { actionTxId })).toEqual([
        503,
        'FILES_UNAVAILABLE',
      ]);
    } finally {
      stores.away = false;
    }
    const { url, kek } = world.replica;
    const records = {
      getSealed: async (_registerId: string, txId: string) => {
        const found = stores.sealed.get(txId);
        if (found === undefined) throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away');
        return found;
      },
    };
    const bare = await openReplica({ url, kek, records });
    const other = createHttpClient(bare);
    const caller = world.client.callers.get('away');
    if (caller !== undefined) other.callers.set('away', caller);
    const target = (txId: string) => `GET ${pathOf(world, reader.walletAddress, { actionTxId: txId })}`;
    expect((await other.call('away', target(actionTxId))).body.code).toBe('FILES_UNAVAILABLE');
    expect((await other.call('away', target('e'.repeat(64)))).body.code).toBe('REGISTER_UNAVAILABLE');
    await other.close();
    await bare.close();
  });
});
