import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { alteredChunk, encryptFile } from '../harness/client-file.ts';
import type { Person } from '../harness/governance.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { application, createParties, sitePermit, workflows } from '../harness/workflow.ts';

const here = installation();
const blueprintId = 'site-permit-approval';
const fileBytes = 25 * 1024 * 1024;
const chunkCount = 7;

const chunk = z.object({
  chunkTransactionId: z.string(),
  receivedChunks: z.number(),
  complete: z.boolean(),
});

/** The site permit with plans of the size that this file has. */
function permitWithLargePlans(wallets: Readonly<Record<string, string>>): Record<string, unknown> {
  const site = sitePermit(wallets) as {
    actions: { dataSchemas: { properties: { plans?: Record<string, unknown> } }[] }[];
  };
  const plans = site.actions[0]?.dataSchemas[0]?.properties.plans;
  if (plans === undefined) throw new Error('the application has no plans');
  plans['x-file'] = { accept: ['application/pdf'], maxSizePerFile: '32MB', maxChunks: 10 };
  return site;
}

describe('a file of an encrypted action, through the gateway', () => {
  let applicant: Person;
  let officer: Person;
  let inspector: Person;
  let stranger: Person;
  let registerId = '';
  let flow: ReturnType<typeof workflows>;
  const content = Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(fileBytes - 9)]);

  beforeAll(async () => {
    flow = workflows(here.api);
    ({ applicant, officer, inspector, stranger } = await createParties(here.api, here.token()));
    const spec = { title: 'Plans', devMode: false };
    registerId = await createRegister(here.api, officer.token, spec, officer.wallet);
    await waitOnline(here.api, officer.token, registerId);
    const wallets = {
      'planning-office': officer.wallet.walletAddress,
      'safety-board': inspector.wallet.walletAddress,
    };
    await flow.publish(officer, permitWithLargePlans(wallets), registerId);
  });

  const encrypted = (contentType = 'application/pdf', bytes = content, chunks = chunkCount) =>
    encryptFile(bytes, chunks, {
      registerId,
      senderWallet: applicant.wallet.walletAddress,
      fileName: 'plans of the site.pdf',
      contentType,
    });
  const send = (json: object) => here.api.send('POST', '/api/file-chunks', { token: applicant.token, json });
  const upload = async (file: ReturnType<typeof encrypted>) => {
    const chunks = [];
    for (const body of file.bodies) {
      const answer = await send(body);
      expect([answer.status, answer.headers.get('cache-control')]).toEqual([201, 'no-store']);
      chunks.push(chunk.parse(answer.body));
    }
    const chunkTransactionIds = chunks.map(({ chunkTransactionId }) => chunkTransactionId);
    return { chunks, reference: { ...file.reference, chunkTransactionIds } };
  };
  const refusal = async (json: object) => {
    const { status, body } = await send(json);
    return [status, z.looseObject({ code: z.string() }).parse(body).code];
  };
  const apply = async (plans: object) => {
    const instanceId = await flow.start(applicant, blueprintId, registerId);
    const payload = { ...application, plans };
    return { instanceId, registerId, blueprintId, actionId: 0, payload };
  };

  test('25 MB in seven chunks: recipients download the same bytes by both routes, others nothing', async () => {
    const file = encrypted();
    const { chunks, reference } = await upload(file);
    expect(chunks.map(({ receivedChunks }) => receivedChunks)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(chunks.map(({ complete }) => complete)).toEqual([...Array(6).fill(false), true]);
    const third = file.bodies[2] ?? {};
    const replay = await send(third);
    expect([replay.status, replay.body]).toMatchObject([
      200,
      { ...chunks[2], receivedChunks: 7, complete: true },
    ]);
    expect(await refusal(alteredChunk({ encryptedData: '', ...third }))).toEqual([409, 'CHUNK_CONFLICT']);

    const applied = await flow.complete(applicant, await apply(reference));
    expect(applied).toMatchObject({ status: 'Complete', error: null });
    const txId = applied.transactionHash ?? '';
    const [fileId = ''] = reference.chunkTransactionIds;
    const paths = ({ walletAddress }: Person['wallet']) => [
      `/api/v1/wallets/${walletAddress}/files/download?registerId=${registerId}&actionTxId=${txId}&fieldName=plans`,
      `/api/files/${walletAddress}/${registerId}/${txId}/${fileId}`,
    ];
    for (const person of [officer, applicant]) {
      for (const path of paths(person.wallet)) {
        const got = await here.api.expect(200, 'GET', path, { token: person.token });
        expect(Buffer.compare(got.bytes, content)).toBe(0);
        expect(got.headers.get('content-type')).toBe('application/pdf');
        expect(got.headers.get('content-disposition')).toBe(
          "attachment; filename*=UTF-8''plans%20of%20the%20site.pdf",
        );
      }
    }
    const refusals = async (person: Person, wallet = person.wallet) =>
      Promise.all(
        paths(wallet).map(async (path) => (await here.api.send('GET', path, { token: person.token })).status),
      );
    expect(await refusals(stranger)).toEqual([403, 403]);
    expect(await refusals(stranger, officer.wallet)).toEqual([403, 403]);
    // The safety board reads other fields of the same step.
    expect(await refusals(inspector)).toEqual([404, 404]);
  }, 60_000);

  test('what is wrong with a chunk or with the reference is refused', async () => {
    const small = encrypted('text/html', randomBytes(1_000), 1);
    const [body = {}] = small.bodies;
    expect(await refusal({ ...body, totalChunks: 11 })).toEqual([400, 'INVALID_REQUEST']);
    expect(await refusal({ ...body, contentType: 7 })).toEqual([400, 'INVALID_REQUEST']);
    const changed = alteredChunk({ encryptedData: '', ...body });
    expect(await refusal({ ...body, encryptedData: changed.encryptedData })).toEqual([400, 'CHUNK_INVALID']);
    const { reference } = await upload(small);
    const answer = await flow.take(applicant, await apply(reference));
    expect([answer.status, answer.body]).toMatchObject([
      422,
      { code: 'PAYLOAD_INVALID', errors: [{ path: '/plans', keyword: 'x-file' }] },
    ]);
  });
});
