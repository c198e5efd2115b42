import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { memberDid } from '#core/ledger/did.ts';
import { createRegister, createWallet, waitOnline } from '../harness/journey.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';
import { until } from '../harness/wait.ts';

const here = installation();
const permit: Readonly<Record<string, unknown>> = JSON.parse(
  readFileSync(new URL('../../components/core/blueprint/vectors/site-permit.json', import.meta.url), 'utf8'),
);
const blueprintId = 'site-permit-approval';
const record = z.object({ registerId: z.string(), status: z.string(), blueprintCount: z.number() });
const published = z.object({ txId: z.string(), version: z.string(), submitted: z.boolean() });
const versions = z.array(
  z.object({ major: z.number(), minor: z.number(), changeType: z.string(), transactionId: z.string() }),
);

describe('the system register', () => {
  let registerId: string;
  let service: string;
  let owner: string;

  const get = async (path: string) => {
    const { body } = await here.api.expect(200, 'GET', path, { token: here.token() });
    return body;
  };
  const publish = async (at: string, callerDid: string, blueprint: object) => {
    const { body } = await here.api.expect(200, 'POST', `/api/registers/${at}/blueprints/publish`, {
      token: service,
      json: { blueprintId, blueprint, publishedBy: callerDid, callerDid },
    });
    return published.parse(body);
  };
  const confirmed = (at: string, txId: string) =>
    until(`the publication ${txId}`, 15_000, async () => {
      const answer = await here.api.send('GET', `/api/registers/${at}/transactions/${txId}`, {
        token: here.token(),
      });
      const { status } = z.object({ status: z.string().or(z.number()) }).parse(answer.body);
      return status === 'confirmed' ? true : undefined;
    });

  beforeAll(async () => {
    registerId = await until('the system register', 30_000, async () => {
      const found = record.parse(await get('/api/system-register'));
      return found.status === 'ready' ? found.registerId : undefined;
    });
    service = (await mintWithSvid(here.state, 'service-blueprint')).token;
    const roster = z.object({ members: z.array(z.object({ subject: z.string() })).length(1) });
    const { members } = roster.parse(await get(`/api/registers/${registerId}/governance/roster`));
    owner = members[0]?.subject ?? '';
  });

  test('exists from the start, with the blueprints of registers themselves', async () => {
    const list = z.object({ items: z.array(z.object({ blueprintId: z.string(), version: z.string() })) });
    const { items } = list.parse(await get('/api/system-register/blueprints'));
    expect(items).toEqual([
      { blueprintId: 'register-creation-v1', version: '1.0' },
      { blueprintId: 'register-governance-v1', version: '1.0' },
    ]);
    await here.api.expect(401, 'GET', '/api/system-register');
  });

  test('a blueprint gets a version by its changes, and a change can be classified beforehand', async () => {
    const first = await publish(registerId, owner, permit);
    expect(first).toMatchObject({ version: '1.0', submitted: true });
    await confirmed(registerId, first.txId);
    expect(await publish(registerId, owner, permit)).toMatchObject({ txId: first.txId, submitted: false });
    const words = { ...permit, title: 'Temporary site permit (2026)' };
    const path = `/api/system-register/blueprints/${blueprintId}`;
    const { body } = await here.api.expect(200, 'POST', `${path}/classify-change`, {
      token: here.token(),
      json: { newBlueprint: words },
    });
    expect(body).toMatchObject({
      changeType: 'documentation',
      currentVersion: '1.0',
      proposedVersion: '1.1',
      structuralFieldsChanged: [],
    });
    const second = await publish(registerId, owner, words);
    await confirmed(registerId, second.txId);
    expect(versions.parse(await get(`${path}/versions`))).toEqual([
      { major: 1, minor: 1, changeType: 'documentation', transactionId: second.txId },
      { major: 1, minor: 0, changeType: 'structural', transactionId: first.txId },
    ]);
    expect(await get(`${path}/versions/${first.txId}`)).toMatchObject({
      version: '1.0',
      definition: { title: permit['title'] },
    });
  });

  test('a blueprint is published on a register by its governors, and nowhere else', async () => {
    const wallet = await createWallet(here.api, here.token(), 'ED25519');
    const own = await createRegister(here.api, here.token(), 'Permits', wallet);
    await waitOnline(here.api, here.token(), own);
    const refused = await here.api.expect(403, 'POST', `/api/registers/${own}/blueprints/publish`, {
      token: service,
      json: { blueprintId, blueprint: permit, publishedBy: owner, callerDid: owner },
    });
    expect(refused.body).toMatchObject({ code: 'PUBLISH_ROLE_REQUIRED' });
    const before = record.parse(await get('/api/system-register')).blueprintCount;
    const { txId } = await publish(own, memberDid(wallet.walletAddress), permit);
    await confirmed(own, txId);
    expect(record.parse(await get('/api/system-register')).blueprintCount).toBe(before);
    await here.api.expect(403, 'POST', `/api/registers/${own}/blueprints/publish`, {
      token: here.token(),
      json: { blueprintId, blueprint: permit, publishedBy: owner, callerDid: owner },
    });
  });

  test('cannot be deleted', async () => {
    const { body } = await here.api.expect(403, 'DELETE', `/api/registers/${registerId}`, {
      token: here.token(),
    });
    expect(body).toMatchObject({ code: 'SYSTEM_REGISTER_PROTECTED' });
  });
});
