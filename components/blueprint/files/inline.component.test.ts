import { randomBytes, randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { application, startPermits } from '../testing/permits.ts';
import type { Site } from '../testing/world.ts';
import { purgeUploads } from './uploads/store.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;

const mebibyte = 1024 ** 2;

/** The application has a list of pictures beside its plans. */
function withPictures(site: Site): void {
  const properties = site.actions[0]?.dataSchemas[0]?.properties ?? {};
  Object.assign(properties, {
    pictures: { type: 'array', items: { type: 'object', 'x-file': { accept: ['image/*'] } } },
  });
}

const inline = (fileName: string, bytes: Buffer, contentType = 'application/pdf') => ({
  fileName,
  contentType,
  contentBase64: bytes.toString('base64'),
});

describe('inline files', () => {
  let permits: Permits;
  beforeAll(async () => {
    permits = await startPermits('blueprint_inline_files');
  });
  afterAll(() => permits.world.stop());
  beforeEach(async () => {
    permits.reset();
    await permits.world.db.transact((tx) =>
      sql`truncate file_claims, file_chunks, file_uploads, file_usage`.execute(tx),
    );
  });

  const apply = (payload: object, files: readonly object[], headers = {}) =>
    permits.execute(0, { ...application, ...payload }, { more: { files }, headers });
  const refusalOf = async (payload: object, files: readonly object[]) => {
    const { status, body } = await apply(payload, files);
    return [status, body.code, Object.keys(body.errors ?? {})];
  };
  const chunks = () => permits.world.db.read.selectFrom('file_chunks').selectAll().execute();
  const disclosed = async (token: string) =>
    (await permits.world.call('GET', `/api/workflows/${permits.at.instanceId}/disclosures`, { token })).body
      .disclosures[0];
  const download = (token: string, wallet: string, fileId: string) => {
    const txId = permits.sealed()[0]?.record.txId;
    return permits.world.call('GET', `/api/files/${wallet}/${permits.at.registerId}/${txId}/${fileId}`, {
      token,
    });
  };

  it.each([false, true])(
    'become references that recipients download byte-equal (development mode: %s)',
    async (devMode) => {
      await permits.prepare(devMode, withPictures);
      const [plans, one, two] = [randomBytes(70_001), randomBytes(10), Buffer.alloc(0)];
      const files = [
        inline('two.png', two, 'image/png'),
        inline('plans.pdf', plans),
        inline('one.png', one, 'image/png'),
      ];
      const payload = {
        plans: { fileName: 'plans.pdf' },
        pictures: [{ fileName: 'one.png' }, { fileName: 'two.png' }],
      };
      const taken = await apply(payload, files);
      expect(taken.status).toBe(devMode ? 200 : 202);
      await permits.world.runner.settle();
      const { data } = await disclosed('admin');
      expect(data.plans).toMatchObject({
        fileName: 'plans.pdf',
        contentType: 'application/pdf',
        size: 70_001,
      });
      const references = [data.plans, ...data.pictures] as { chunkTransactionIds: string[] }[];
      const ids = references.map(({ chunkTransactionIds }) => chunkTransactionIds[0] ?? '');
      if (devMode) expect(taken.body.fileTransactionHashes).toEqual(ids);
      const { applicant, office, board, stranger } = permits.wallets;
      for (const [index, content] of [plans, one, two].entries()) {
        for (const [token, wallet] of [
          ['user', applicant],
          ['admin', office],
        ] as const) {
          const sent = await download(token, wallet, ids[index] ?? '');
          expect([sent.status, sent.bytes.equals(content)]).toEqual([200, true]);
        }
      }
      expect((await download('designer', board, ids[0] ?? '')).status).toBe(404);
      const refused = await download('stranger', stranger, ids[0] ?? '');
      expect([refused.status, refused.body.code]).toEqual([403, 'NOT_A_RECIPIENT']);
      permits.world.clock.advance(48 * 3_600_000);
      await permits.world.db.transact((tx) => purgeUploads(tx, new Date(permits.world.clock.nowMs())));
      expect((await download('user', applicant, ids[0] ?? '')).status).toBe(200);
    },
  );

  it('need no object in the payload when there is one file and one field for it', async () => {
    await permits.prepare(true);
    const taken = await apply({}, [inline('plans.pdf', randomBytes(20))]);
    expect([taken.status, taken.body.fileTransactionHashes]).toEqual([200, [expect.any(String)]]);
    expect((await disclosed('user')).data.plans).toMatchObject({ fileName: 'plans.pdf', size: 20 });
  });

  it('are refused where no field takes them, and where a field names an absent one', async () => {
    await permits.prepare(false, withPictures);
    const [plans, picture] = [
      inline('plans.pdf', randomBytes(5)),
      inline('a.png', randomBytes(5), 'image/png'),
    ];
    const absent = (pointer: string) => [400, 'INLINE_FILE_ABSENT', [pointer]];
    const unplaced = (...pointers: string[]) => [400, 'INLINE_FILE_UNPLACED', pointers];
    const named = { plans: { fileName: 'plans.pdf' } };
    expect(await refusalOf(named, [])).toEqual(absent('/payloadData/plans'));
    expect(await refusalOf({ pictures: [{ fileName: 'b.png' }] }, [picture])).toEqual(
      absent('/payloadData/pictures/0'),
    );
    // two fields: one file alone has no place
    expect(await refusalOf({}, [plans])).toEqual(unplaced('/files/0'));
    expect(await refusalOf(named, [picture, plans])).toEqual(unplaced('/files/0'));
    expect(await refusalOf({ siteReference: { fileName: 'plans.pdf' } }, [plans])).toEqual(
      unplaced('/files/0'),
    );
    expect(await refusalOf({ plans: { fileName: 'plans.pdf', size: 5 } }, [plans])).toEqual(
      unplaced('/files/0'),
    );
    await permits.prepare(false);
    expect(await refusalOf({ plans: { fileName: 'plans.pdf', size: 5 } }, [plans])).toEqual(
      unplaced('/files/0'),
    );
    expect(await refusalOf({}, [plans, picture])).toEqual(unplaced('/files/0', '/files/1'));
    expect(await chunks()).toEqual([]);
  });

  it.each<[string, object, unknown[]]>([
    ['no base64', { contentBase64: '***' }, [400, 'INLINE_FILE_INVALID']],
    ['base64 with stray bits', { contentBase64: 'AB==' }, [400, 'INLINE_FILE_INVALID']],
    ['a name with a slash', { fileName: 'a/plans.pdf' }, [400, 'INVALID_REQUEST']],
    ['a name with a backslash', { fileName: '..\\plans.pdf' }, [400, 'INVALID_REQUEST']],
    ['a name with a control character', { fileName: 'plans\u0000.pdf' }, [400, 'INVALID_REQUEST']],
    ['a name with a line feed', { fileName: 'plans\n.pdf' }, [400, 'INVALID_REQUEST']],
    ['a name that turns its direction', { fileName: 'fdp.\u202enalp' }, [400, 'INVALID_REQUEST']],
    ['no name', { fileName: '' }, [400, 'INVALID_REQUEST']],
    ['a name of 256 characters', { fileName: 'x'.repeat(256) }, [400, 'INVALID_REQUEST']],
    ['a type with a control character', { contentType: 'text/html\r\nx: y' }, [400, 'INVALID_REQUEST']],
    ['a type that the field does not take', { contentType: 'text/html' }, [422, 'PAYLOAD_INVALID']],
    ['another member', { size: 5 }, [400, 'INVALID_REQUEST']],
    [
      'one byte more than 1 MiB',
      { contentBase64: Buffer.alloc(mebibyte + 1).toString('base64') },
      [413, 'INLINE_FILE_TOO_LARGE'],
    ],
  ])('are refused with %s, and nothing is stored', async (_name, change, expected) => {
    await permits.prepare(false);
    const { status, body } = await apply({}, [{ ...inline('plans.pdf', randomBytes(5)), ...change }]);
    expect([status, body.code]).toEqual(expected);
    expect(await chunks()).toEqual([]);
  });

  it('have distinct names, are ten at most, and 6 MiB together', async () => {
    await permits.prepare(false, withPictures);
    const picture = (name: string, size = 1) => inline(name, randomBytes(size), 'image/png');
    const pictures = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ fileName: `${index}.png` }));
    const files = (count: number, size?: number) =>
      pictures(count).map((each) => picture(each.fileName, size));
    const twice = [picture('0.png'), picture('0.png')];
    expect(await refusalOf({ pictures: pictures(1) }, twice)).toEqual([
      400,
      'INLINE_FILE_INVALID',
      ['/files/1/fileName'],
    ]);
    expect((await refusalOf({ pictures: pictures(11) }, files(11))).slice(0, 2)).toEqual([
      400,
      'INVALID_REQUEST',
    ]);
    const large = [...files(6, mebibyte), picture('6.png')];
    expect(await refusalOf({ pictures: pictures(7) }, large)).toEqual([
      413,
      'INLINE_FILE_TOO_LARGE',
      ['/files'],
    ]);
    const most = await apply({ pictures: pictures(6) }, files(6, mebibyte));
    expect(most.status).toBe(202);
    await permits.world.runner.settle();
    expect((await permits.operation(most.body.operationId)).status).toBe('Complete');
    expect(await chunks()).toHaveLength(6);
  });

  it('count for the quota of the organisation, and a refused step stores none', async () => {
    await permits.prepare(false, withPictures);
    const pictures = Array.from({ length: 6 }, (_, index) => ({ fileName: `${index}.png` }));
    const files = pictures.map(({ fileName }) => inline(fileName, randomBytes(mebibyte), 'image/png'));
    expect((await apply({ pictures }, files)).status).toBe(202);
    await permits.world.runner.settle();
    await permits.prepare(false, withPictures);
    expect((await refusalOf({ pictures }, files)).slice(0, 2)).toEqual([422, 'FILE_QUOTA']);
    expect(await chunks()).toHaveLength(6);
    // the refused step has not reserved the start
    expect((await apply({}, [])).status).toBe(202);
    await permits.world.runner.settle();
  });

  it('are stored once when the request is repeated with its key, also at the same time', async () => {
    await permits.prepare(false);
    const file = inline('plans.pdf', randomBytes(5000));
    const headers = { 'idempotency-key': randomUUID() };
    const answers = await Promise.all([1, 2, 3].map(() => apply({}, [file], headers)));
    answers.push(await apply({}, [file], headers));
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202, 202]);
    expect(new Set(answers.map(({ body }) => body.operationId)).size).toBe(1);
    expect(await chunks()).toHaveLength(1);
    const other = await apply({}, [inline('plans.pdf', randomBytes(5000))], headers);
    expect([other.status, other.body.code]).toEqual([409, 'IDEMPOTENCY_KEY_REUSED']);
    await permits.world.runner.settle();
    const usage = await permits.world.db.read.selectFrom('file_usage').selectAll().execute();
    expect(usage.map(({ stored_bytes }) => Number(stored_bytes))).toEqual([5040]);
  });

  it('are given back when their operation fails, and take an action that begins its instance', async () => {
    await permits.prepare(false);
    permits.world.keys.hooks.beforeSign = () => {
      throw new Error('killed');
    };
    const first = await apply({}, [inline('plans.pdf', randomBytes(50))]);
    await permits.world.runner.settle();
    permits.world.clock.advance(301_000);
    permits.world.keys.hooks.beforeSign = undefined;
    await permits.world.runner.takeUp();
    await permits.world.runner.settle();
    expect((await permits.operation(first.body.operationId)).status).toBe('Failed');
    permits.world.clock.advance(24 * 3_600_000);
    await permits.world.db.transact((tx) => purgeUploads(tx, new Date(permits.world.clock.nowMs())));
    expect((await chunks()).map(({ encrypted_data }) => encrypted_data)).toEqual([null]);
    const { registerId, blueprintId } = permits.at;
    const body = {
      blueprintId,
      registerAddress: registerId,
      actionId: '0',
      senderWallet: permits.wallets.applicant,
      payloadData: { ...application, plans: { fileName: 'plans.pdf' } },
      files: [inline('plans.pdf', randomBytes(50))],
    };
    const begun = await permits.world.call('POST', '/api/actions', { token: 'user', body });
    expect(begun.status).toBe(202);
    await permits.world.runner.settle();
    expect((await permits.operation(begun.body.operationId)).status).toBe('Complete');
    const large = { ...body, payloadData: { ...application, more: 'x'.repeat(2 * mebibyte) } };
    const refused = await permits.world.call('POST', '/api/actions', { token: 'user', body: large });
    expect([refused.status, refused.body.code]).toEqual([413, 'PAYLOAD_TOO_LARGE']);
  });
});
