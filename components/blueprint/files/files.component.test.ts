import { randomBytes, randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sha256Hex } from '#core/crypto/hash.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { Cleanup } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient, createRpcServer } from '#kit/rpc/rpc.ts';
import { fixedWorkload, memoryAuthority } from '#kit/rpc/workload.fixture.ts';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { FileChunkService } from '#protos/gen/chancery/blueprint/v1/files_pb.js';
import { type MadeFile, makeFile } from '../testing/files.ts';
import { application, startPermits } from '../testing/permits.ts';
import { chunkHandlers, mayReadChunks } from './rpc.ts';
import { purgeUploads, readChunk } from './uploads/store.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;
type Body = MadeFile['chunks'][number]['body'];

const hourMs = 3_600_000;

describe('files', () => {
  let permits: Permits;

  beforeAll(async () => {
    permits = await startPermits('blueprint_files');
  });
  afterAll(() => permits.world.stop());
  beforeEach(async () => {
    permits.reset();
    // What earlier tests uploaded counts for the same organisation.
    await permits.world.db.transact((tx) =>
      sql`truncate file_claims, file_chunks, file_uploads, file_usage`.execute(tx),
    );
    await permits.prepare(false);
  });

  const place = () => ({ registerId: permits.at.registerId, senderWallet: permits.wallets.applicant });
  const made = (sizes: readonly number[] = [100], change: object = {}) =>
    makeFile(
      place(),
      sizes.map((size) => randomBytes(size)),
      change,
    );
  const send = (body: object, token = 'user') =>
    permits.world.call('POST', '/api/file-chunks', { token, body });
  const answerOf = async (body: object, token = 'user') => {
    const sent = await send(body, token);
    return [sent.status, sent.body.code];
  };
  const bodyOf = (file: MadeFile, index = 0): Body => {
    const body = file.chunks[index]?.body;
    if (body === undefined) throw new RangeError('the file has no such chunk');
    return body;
  };
  async function upload(file: MadeFile): Promise<void> {
    for (const { body } of file.chunks) {
      const { status, body: answer } = await send(body);
      if (status !== 201) throw new Error(JSON.stringify(answer));
    }
  }
  const usage = async () => {
    const row = await permits.world.db.read
      .selectFrom('file_usage')
      .select('stored_bytes')
      .executeTakeFirst();
    return Number(row?.stored_bytes ?? 0);
  };
  const purge = () =>
    permits.world.db.transact((tx) => purgeUploads(tx, new Date(permits.world.clock.nowMs())));
  const read = (file: MadeFile, index = 0, registerId = permits.at.registerId) =>
    readChunk(permits.world.db.read, { registerId, chunkId: file.chunks[index]?.id ?? '' });
  const submit = (plans: object) => permits.execute(0, { ...application, plans });

  describe('chunks', () => {
    it('are stored under their content address, in any order, and once', async () => {
      const file = made([5000, 10, 1]);
      const described = { ...bodyOf(file, 2), ...bodyOf(file, 0), ...bodyOf(file, 2) };
      const first = await send(described);
      expect([first.status, first.headers['cache-control']]).toEqual([201, 'no-store']);
      expect(first.body).toEqual({
        chunkTransactionId: file.chunks[2]?.id,
        uploadId: bodyOf(file).uploadId,
        chunkIndex: 2,
        receivedChunks: 1,
        totalChunks: 3,
        complete: false,
        timestamp: new Date(permits.world.clock.nowMs()).toISOString(),
      });
      permits.world.clock.advance(1_000);
      const replay = await send(bodyOf(file, 2));
      expect([replay.status, replay.body]).toEqual([200, first.body]);
      await send(bodyOf(file, 0));
      const last = await send(bodyOf(file, 1));
      expect(last.body).toMatchObject({ receivedChunks: 3, complete: true });
      expect((await read(file, 1)).equals(file.chunks[1]?.chunk ?? Buffer.of())).toBe(true);
      expect(await usage()).toBe(5040 + 2 * 4096);
    });

    it('are one when they arrive twice at the same time', async () => {
      const file = made([300]);
      const answers = await Promise.all([1, 2, 3].map(() => send(bodyOf(file))));
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 201]);
      expect(await usage()).toBe(4096);
    });

    it('conflict with other bytes and with another description', async () => {
      const file = made([100, 100]);
      await send(bodyOf(file));
      const other = randomBytes(140);
      const change = { encryptedData: encodeBase64(other), checksum: `sha256:${sha256Hex(other)}` };
      expect(await answerOf({ ...bodyOf(file), ...change })).toEqual([409, 'CHUNK_CONFLICT']);
      expect(await answerOf({ ...bodyOf(file, 1), totalChunks: 3 })).toEqual([409, 'CHUNK_CONFLICT']);
      expect(await answerOf({ ...bodyOf(file), fileName: 'other.pdf' })).toEqual([409, 'CHUNK_CONFLICT']);
    });

    it.each<[string, object, unknown[]]>([
      ['no base64', { encryptedData: '***' }, [400, 'CHUNK_INVALID']],
      [
        'bytes that are not those of the checksum',
        { checksum: `sha256:${'0'.repeat(64)}` },
        [400, 'CHUNK_INVALID'],
      ],
      ['no nonce and tag', { encryptedData: encodeBase64(Buffer.alloc(39)) }, [400, 'CHUNK_INVALID']],
      ['a position behind the last', { chunkIndex: 1 }, [400, 'CHUNK_INVALID']],
      ['another size than the file', { fileSize: 99 }, [400, 'CHUNK_INVALID']],
      ['half a description', { fileName: undefined }, [400, 'CHUNK_INVALID']],
      ['no register', { registerAddress: undefined }, [400, 'CHUNK_INVALID']],
      ['an unknown register', { registerAddress: 'f'.repeat(32) }, [404, 'REGISTER_NOT_FOUND']],
      ['eleven chunks', { totalChunks: 11 }, [400, 'INVALID_REQUEST']],
      ['an eleventh chunk', { chunkIndex: 10 }, [400, 'INVALID_REQUEST']],
      ['a file of more than 40 MiB', { fileSize: 40 * 1024 * 1024 + 1 }, [400, 'INVALID_REQUEST']],
      ['an upload id in upper case', { uploadId: randomUUID().toUpperCase() }, [400, 'INVALID_REQUEST']],
      ['another member', { more: 1 }, [400, 'INVALID_REQUEST']],
    ])('are refused with %s', async (_name, change, expected) => {
      expect(await answerOf({ ...bodyOf(made()), ...change })).toEqual(expected);
      expect(await usage()).toBe(0);
    });

    it('are refused with query parameters', async () => {
      const { status } = await permits.world.call('POST', '/api/file-chunks?a=1', {
        token: 'user',
        body: bodyOf(made()),
      });
      expect(status).toBe(400);
    });

    it('have 4 MiB of ciphertext at most', async () => {
      await upload(made([4 * 1024 * 1024]));
      const large = randomBytes(4 * 1024 * 1024 + 41);
      const body = { encryptedData: encodeBase64(large), checksum: `sha256:${sha256Hex(large)}` };
      expect((await answerOf({ ...bodyOf(made()), ...body }))[0]).toBe(413);
      const huge = { encryptedData: 'A'.repeat(5_700_000) };
      expect((await answerOf({ ...bodyOf(made()), ...huge }))[0]).toBe(413);
    });

    it('belong to the wallet of their sender', async () => {
      const file = made([100, 100]);
      expect(await answerOf(bodyOf(file), 'stranger')).toEqual([403, 'WALLET_NOT_OWNED']);
      await send(bodyOf(file));
      expect(await answerOf(bodyOf(file, 1), 'stranger')).toEqual([403, 'WALLET_NOT_OWNED']);
      const own = { ...bodyOf(file), senderWallet: permits.wallets.stranger };
      expect(await answerOf(own, 'stranger')).toEqual([403, 'WALLET_NOT_OWNED']);
    });

    it('count for the quota of the organisation', async () => {
      await upload(made([4_000_000]));
      await upload(made([4_000_000]));
      const third = made([400_000]);
      expect(await answerOf(bodyOf(third))).toEqual([422, 'FILE_QUOTA']);
      expect(await usage()).toBe(8_000_080);
      await upload(made([1000]));
      permits.world.clock.advance(24 * hourMs);
      await purge();
      expect(await usage()).toBe(0);
      await upload(third);
    });
  });

  describe('unclaimed ones', () => {
    it('are purged a day after their first chunk, remembered for 30 days, and no sooner', async () => {
      const file = made([100, 100]);
      await send(bodyOf(file));
      permits.world.clock.advance(24 * hourMs - 1);
      await purge();
      await read(file);
      await send(bodyOf(file, 1));
      permits.world.clock.advance(1);
      await purge();
      await expect(read(file)).rejects.toMatchObject({ kind: 'gone', code: 'CHUNK_PURGED' });
      expect(await answerOf(bodyOf(file))).toEqual([409, 'CHUNK_CONFLICT']);
      const late = await submit(file.reference);
      expect([late.status, late.body.code]).toEqual([422, 'PAYLOAD_INVALID']);
      permits.world.clock.advance(30 * 24 * hourMs + 1);
      await purge();
      await expect(read(file)).rejects.toMatchObject({ kind: 'not_found' });
    });
  });

  describe('a step', () => {
    it('claims the files of its payload, which are kept', async () => {
      const file = made([2000, 10]);
      await upload(file);
      await permits.done(0, { ...application, plans: file.reference }, { token: 'user' });
      permits.world.clock.advance(48 * hourMs);
      await purge();
      expect((await read(file)).length).toBe(2040);
    });

    it('names its files on a register of development', async () => {
      await permits.prepare(true);
      const file = made([2000, 10]);
      await upload(file);
      const taken = await submit(file.reference);
      expect(taken.status).toBe(200);
      expect(taken.body.fileTransactionHashes).toEqual([file.chunks[0]?.id]);
    });

    it('may refer to a file of an earlier step of the sender', async () => {
      const file = made();
      await upload(file);
      await permits.done(0, { ...application, plans: file.reference }, { token: 'user' });
      const body = { blueprintId: permits.at.blueprintId, registerId: permits.at.registerId };
      const instance = await permits.world.call('POST', '/api/instances/', { token: 'user', body });
      permits.at.instanceId = instance.body.instanceId;
      await permits.done(0, { ...application, plans: file.reference }, { token: 'user' });
    });

    it.each<[string, (file: MadeFile) => object]>([
      ['no reference', () => ({ fileName: 'x', size: 1 })],
      [
        'a type that the field does not take',
        ({ reference }) => ({ ...reference, contentType: 'text/html' }),
      ],
      ['another name than was declared', ({ reference }) => ({ ...reference, fileName: 'x.pdf' })],
      ['another hash', ({ reference }) => ({ ...reference, hash: `sha256:${'1'.repeat(64)}` })],
      ['too large a file', ({ reference }) => ({ ...reference, size: 16 * 1024 * 1024 + 1 })],
      ['an unknown upload', ({ reference }) => ({ ...reference, uploadId: randomUUID() })],
      [
        'an upload in another spelling',
        ({ reference }) => ({ ...reference, uploadId: reference.uploadId.toUpperCase() }),
      ],
      ['an altered chunk', ({ reference }) => ({ ...reference, chunkTransactionIds: ['a'.repeat(64)] })],
      [
        'eleven chunks',
        ({ reference }) => ({ ...reference, chunkTransactionIds: Array(11).fill('a'.repeat(64)) }),
      ],
    ])('is refused with %s, and claims nothing', async (_name, change) => {
      const file = made();
      await upload(file);
      const refused = await submit(change(file));
      expect([refused.status, refused.body.code]).toEqual([422, 'PAYLOAD_INVALID']);
      expect(refused.body.errors).toMatchObject([{ path: '/plans', keyword: 'x-file' }]);
      const operations = await permits.world.call(
        'GET',
        `/api/operations?wallet=${permits.wallets.applicant}`,
        {
          token: 'user',
        },
      );
      const own = operations.body.items as { instanceId: string }[];
      expect(own.filter(({ instanceId }) => instanceId === permits.at.instanceId)).toEqual([]);
      permits.world.clock.advance(24 * hourMs);
      await purge();
      await expect(read(file)).rejects.toMatchObject({ kind: 'gone' });
    });

    it('is refused with five chunks where four are taken, and with a file that is not complete', async () => {
      const five = made([1, 1, 1, 1, 1]);
      await upload(five);
      expect((await submit(five.reference)).body.errors).toMatchObject([{ path: '/plans' }]);
      const half = made([1, 1]);
      await send(bodyOf(half));
      expect((await submit(half.reference)).body.code).toBe('PAYLOAD_INVALID');
    });

    it('is refused with a file of another wallet, or of another register', async () => {
      const foreign = makeFile(
        { registerId: permits.at.registerId, senderWallet: permits.wallets.stranger },
        [randomBytes(10)],
      );
      expect((await send(bodyOf(foreign), 'stranger')).status).toBe(201);
      expect((await submit(foreign.reference)).body.code).toBe('PAYLOAD_INVALID');
      const elsewhere = made();
      await upload(elsewhere);
      await permits.prepare(false);
      expect((await submit(elsewhere.reference)).body.code).toBe('PAYLOAD_INVALID');
    });

    it('that fails gives its files back, and another one may claim them', async () => {
      const file = made();
      await upload(file);
      permits.world.keys.hooks.beforeSign = () => {
        throw new Error('killed');
      };
      const first = await submit(file.reference);
      await permits.world.runner.settle();
      permits.world.clock.advance(301_000);
      await purge();
      permits.world.keys.hooks.beforeSign = undefined;
      await permits.world.runner.takeUp();
      await permits.world.runner.settle();
      expect((await permits.operation(first.body.operationId)).status).toBe('Failed');
      const claims = await permits.world.db.read.selectFrom('file_claims').selectAll().execute();
      expect(claims.filter((each) => each.operation_id === first.body.operationId)).toEqual([]);
      permits.world.clock.advance(24 * hourMs - 1);
      await purge();
      await permits.done(0, { ...application, plans: file.reference }, { token: 'user' });
      permits.world.clock.advance(24 * hourMs);
      await purge();
      await read(file);
    });
  });

  describe('the wallet service', () => {
    const cleanup = new Cleanup();
    const runtime = testRuntime('service-blueprint');
    let clientOf: (clientId: string) => Promise<ReturnType<typeof open>>;
    const open = (workload: Awaited<ReturnType<typeof fixedWorkload>>, port: number) =>
      createRpcClient(FileChunkService, {
        runtime,
        workload,
        token: async () => 'token',
        address: { host: '127.0.0.1', port },
        expect: serviceSpiffeId(workload.trustDomain, 'service-blueprint'),
      });

    beforeAll(async () => {
      const authority = await memoryAuthority(testInstallation);
      const workload = await fixedWorkload(authority, 'service-blueprint');
      const server = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
      cleanup.add('server', () => server.stop());
      server.add(FileChunkService, chunkHandlers(permits.world.db), { allow: mayReadChunks });
      const port = await server.listen();
      clientOf = async (clientId) => {
        const client = open(await fixedWorkload(authority, clientId), port);
        cleanup.add(clientId, () => client.close());
        return client;
      };
    });
    afterAll(() => cleanup.run(runtime.log));

    it('alone reads chunks', async () => {
      const file = made([4 * 1024 * 1024]);
      await upload(file);
      const { registerId } = permits.at;
      const chunkId = file.chunks[0]?.id ?? '';
      const wallet = await clientOf('service-wallet');
      const { encryptedData } = await wallet.readChunk({ registerId, chunkId });
      expect(Buffer.from(encryptedData).equals(file.chunks[0]?.chunk ?? Buffer.of())).toBe(true);
      for (const unknown of [
        { registerId, chunkId: 'e'.repeat(64) },
        { registerId: 'e'.repeat(32), chunkId },
        { registerId, chunkId: 'x' },
      ])
        await expect(wallet.readChunk(unknown)).rejects.toMatchObject({ kind: 'not_found' });
      const other = await clientOf('service-register');
      await expect(other.readChunk({ registerId, chunkId })).rejects.toMatchObject({ kind: 'forbidden' });
      permits.world.clock.advance(24 * hourMs);
      await purge();
      await expect(wallet.readChunk({ registerId, chunkId })).rejects.toMatchObject({ kind: 'gone' });
    });
  });
});
