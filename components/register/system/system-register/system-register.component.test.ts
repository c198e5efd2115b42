import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { memberDid } from '#core/ledger/did.ts';
import { parseRecord, recordBytes, type SealedRecord } from '#core/ledger/record.ts';
import { systemRegisterId } from '#core/ledger/register-id.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { tryAlone } from './store.ts';

const id = systemRegisterId('default');
const installation = memberDid(testKey(200).walletAddress);
const seeds = ['register-creation-v1', 'register-governance-v1'];
const site = readFileSync(
  new URL('../../../core/blueprint/vectors/site-permit.json', import.meta.url),
  'utf8',
);
type Json = Record<string, unknown>;
const definition = (change: Json = {}): Json => ({ ...JSON.parse(site), ...change });

async function record(register: TestRegister, token = 'user') {
  return (await register.call('GET', '/api/system-register', { token })).body;
}

/** Seals the pending transactions of the system register until it is ready. */
async function sealUntilReady(register: TestRegister): Promise<void> {
  const isReady = async () => {
    if (register.validators.pooled(id).length > 0) await register.seal(id);
    return (await record(register)).status === 'ready';
  };
  await waitFor(isReady, { what: 'the system register' });
}

describe('the system register', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('system_register', { systemRegister: 1 });
    register.ledger.onAnnounced('validator-0');
    await sealUntilReady(register);
  });
  afterAll(() => register.stop());

  const get = (path: string, token = 'user') =>
    register.call('GET', `/api/system-register${path}`, { token });
  const classify = (blueprintId: string, newBlueprint: unknown) =>
    register.call('POST', `/api/system-register/blueprints/${blueprintId}/classify-change`, {
      token: 'user',
      body: { newBlueprint },
    });
  const publish = (blueprint: Json, rest: Json = {}) =>
    register.call('POST', `/api/registers/${id}/blueprints/publish`, {
      token: 'blueprint',
      body: {
        blueprintId: blueprint['id'],
        blueprint,
        publishedBy: installation,
        callerDid: installation,
        ...rest,
      },
    });
  const published = async (blueprint: Json) => {
    const { status, body } = await publish(blueprint);
    expect(status).toBe(200);
    if (body.submitted) await register.seal(id);
    return body;
  };

  it('is visible to every caller, owned by the installation', async () => {
    for (const token of ['user', 'stranger', 'system', 'blueprint']) {
      expect(await record(register, token)).toMatchObject({
        registerId: id,
        name: 'System register',
        status: 'ready',
        blueprintCount: 2,
        networkId: 'default',
      });
    }
    expect((await register.call('GET', '/api/system-register')).status).toBe(401);
    const { body } = await register.call('GET', `/api/registers/${id}/governance/roster`, { token: 'user' });
    expect(body.members).toMatchObject([{ subject: installation, role: 'Owner' }]);
    const { policy } = (await register.call('GET', `/api/registers/${id}/policy`, { token: 'user' })).body;
    expect(policy.consensus.requireBoundTxId).toBe(true);
    const owner = await register.database.read
      .selectFrom('registers')
      .select(['organization_id', 'purpose'])
      .where('register_id', '=', id)
      .executeTakeFirst();
    expect(owner).toEqual({ organization_id: SYSTEM_ORGANIZATION_ID, purpose: 'System' });
  });

  it('is in every list, and cannot be deleted', async () => {
    const { body } = await register.call('GET', '/api/registers', { token: 'stranger' });
    expect(body.items.map((one: Json) => one['id'])).toEqual([id]);
    for (const token of ['admin', 'system']) {
      const refused = await register.call('DELETE', `/api/registers/${id}`, { token });
      expect([refused.status, refused.body.code]).toEqual([403, 'SYSTEM_REGISTER_PROTECTED']);
    }
  });

  it('lists its initial blueprints, each as version 1.0', async () => {
    const { body } = await get('/blueprints?pageSize=1');
    expect(body).toMatchObject({ page: 1, pageSize: 1, totalPages: body.totalCount });
    const [first] = body.items;
    expect(first).toMatchObject({
      blueprintId: seeds[0],
      version: '1.0',
      publishedBy: installation,
      isActive: true,
      metadata: {},
    });
    expect(first.publishedAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect((await get('/blueprints')).body.items.map((one: Json) => one['blueprintId'])).toEqual(
      expect.arrayContaining(seeds),
    );
    expect((await get('/blueprints?pageSize=101')).status).toBe(400);
  });

  it('numbers versions by their changes, and finds each by number, ordinal and publication', async () => {
    const first = await published(definition());
    expect(first).toMatchObject({ version: '1.0', changeType: 'structural', submitted: true });
    const words = await published(definition({ title: 'Another title' }));
    expect(words).toMatchObject({ version: '1.1', changeType: 'documentation' });
    const structure = await published(definition({ title: 'Another title', 'x-team': 1 }));
    expect(structure).toMatchObject({ version: '2.0', changeType: 'structural' });
    const path = '/blueprints/site-permit-approval';
    const versions = (await get(`${path}/versions`)).body;
    expect(versions.map((one: Json) => [one['major'], one['minor'], one['changeType']])).toEqual([
      [2, 0, 'structural'],
      [1, 1, 'documentation'],
      [1, 0, 'structural'],
    ]);
    expect(versions[1]).toMatchObject({
      transactionId: words.txId,
      structuralHash: first.structuralHash,
      publishedBy: installation,
    });
    for (const key of ['1.1', '2', words.txId, words.txId.toUpperCase()]) {
      expect((await get(`${path}/versions/${key}`)).body).toMatchObject({
        version: '1.1',
        ordinal: 2,
        transactionId: words.txId,
        definition: { title: 'Another title' },
      });
    }
    const latest = (await get(path)).body;
    expect(latest).toMatchObject({
      version: '2.0',
      definition: { 'x-team': 1 },
      metadata: { category: 'permits' },
    });
    expect(latest.definition.version).toBeUndefined();
    for (const key of ['1.2', '4', '0', '99999999999', 'x', '1.', 'f'.repeat(64)]) {
      const missing = await get(`${path}/versions/${key}`);
      expect([key, missing.status, missing.body.code]).toEqual([key, 404, 'BLUEPRINT_NOT_FOUND']);
    }
    expect((await get('/blueprints/nothing')).status).toBe(404);
    expect((await get('/blueprints/%00')).status).toBe(404);
    expect((await get('/blueprints/nothing/versions')).status).toBe(404);
    expect((await get(`${path}/versions?page=2`)).body).toEqual([]);
    const sealed = await register.call('GET', `/api/registers/${id}/transactions/${words.txId}`, {
      token: 'user',
    });
    expect(sealed.body).toMatchObject({
      status: 'confirmed',
      bound: false,
      metadata: { transactionType: 'BlueprintPublish', structuralHash: words.structuralHash },
    });
    expect((await record(register)).blueprintCount).toBe(3);
  });

  it('classifies a change without publishing it', async () => {
    const base = definition({ id: 'classified' });
    await published(base);
    const again = await classify('classified', { ...base, version: 9 });
    expect(again.body).toMatchObject({ proposedVersion: '1.0', alreadyPublished: true });
    const words = await classify('classified', { ...base, description: 'Other words for it' });
    expect(words.status).toBe(200);
    expect(words.body).toMatchObject({
      changeType: 'documentation',
      currentVersion: '1.0',
      proposedVersion: '1.1',
      structuralFieldsChanged: [],
      behavioural: false,
    });
    expect(words.body.structuralHashNew).toBe(words.body.structuralHashCurrent);
    const { actions, ...rest } = base as { actions: Json[] };
    const [apply, ...others] = actions;
    const { id: _id, ...unnamed } = rest as Json;
    const structure = await classify('classified', {
      ...unnamed,
      actions: [{ ...apply, sender: 'planning-office' }, ...others],
    });
    expect(structure.body).toMatchObject({
      changeType: 'structural',
      proposedVersion: '2.0',
      structuralFieldsChanged: ['/actions/0/sender'],
      behavioural: true,
    });
    expect((await classify('nothing', base)).status).toBe(404);
    const other = await classify('classified', definition());
    expect([other.status, other.body.code]).toEqual([422, 'VAL_SCHEMA_001']);
    expect((await classify('classified', 'text')).status).toBe(400);
    expect((await get('/blueprints/classified/versions')).body).toHaveLength(1);
  });

  it('is governed by system administrators, who may allow others to publish', async () => {
    const designer = testKey(5);
    register.wallets.own('second', designer);
    const member = {
      operationType: 'add-member',
      targetDid: memberDid(designer.walletAddress),
      targetRole: 'Designer',
    };
    const propose = (token: string) =>
      register.call('POST', `/api/registers/${id}/governance/propose`, { token, body: member });
    expect((await propose('admin')).status).toBe(403);
    const callerDid = member.targetDid;
    const blueprint = definition({ id: 'from-a-designer' });
    expect((await publish(blueprint, { callerDid })).body.code).toBe('PUBLISH_ROLE_REQUIRED');
    const added = await propose('system');
    expect([added.status, added.body]).toMatchObject([202, { requiresGovernanceVote: false }]);
    await register.seal(id);
    expect((await publish(blueprint, { callerDid })).body).toMatchObject({ submitted: true });
    await register.seal(id);
  });

  it('refuses an id that is not derived, even with the label of a publication', async () => {
    const blueprint = definition({ id: 'forged' });
    await publish(blueprint);
    const [waiting] = register.validators.take(id, 1);
    if (waiting === undefined) throw new Error('nothing waits');
    const sealed = parseRecord(waiting.record);
    const renamed = { ...sealed, metadata: { ...sealed.metadata, publishedBy: 'did:platform:w:other' } };
    const write = async (sealedRecord: SealedRecord) => {
      const transactions = [{ ...waiting, record: recordBytes(sealedRecord) }];
      return register.ledger.writeDocket(
        buildDocket(await register.state(id), transactions, register.members),
      );
    };
    expect(await write(renamed)).toMatchObject({
      outcome: 'invalid',
      violations: [{ code: 'VAL_STRUCT_011', field: 'transactions[0].record.txId' }],
    });
    expect(await write(sealed)).toMatchObject({ outcome: 'stored' });
  });
});

describe('bootstrap of the system register', () => {
  it('waits for all validators that it needs', async () => {
    const register = await startTestRegister('system_register_waits', {
      members: 1,
      spare: 1,
      systemRegister: 2,
    });
    register.ledger.onAnnounced('validator-0');
    expect(await record(register)).toMatchObject({
      status: 'initializing',
      reason: 'NotCreated',
      createdAt: null,
    });
    expect(
      (await register.call('GET', '/api/system-register/blueprints', { token: 'user' })).body,
    ).toMatchObject({
      items: [],
      totalCount: 0,
    });
    expect((await register.call('GET', '/api/system-register/blueprints/x', { token: 'user' })).status).toBe(
      404,
    );
    const [, spare] = register.validators.members;
    if (spare === undefined) throw new Error('no spare validator');
    await register.introduce(spare);
    register.ledger.onAnnounced('validator-0');
    await waitFor(() => register.validators.pooled(id).length > 0, { what: 'the genesis' });
    expect(await record(register)).toMatchObject({ status: 'initializing', reason: 'GenesisPending' });
    await sealUntilReady(register);
    const members = await register.call('GET', `/api/registers/${id}/validators/approved`, { token: 'user' });
    expect(members.body.count).toBe(2);
    const measured = async (text: string) =>
      (await register.runtime.telemetry.registry.metrics()).includes(text);
    await waitFor(() => measured('system_register_ready 1'));
    await register.database.pool.query("update registers set status = 'Halted'");
    register.ledger.onAnnounced('validator-0');
    await waitFor(() => measured('system_register_ready 0'));
    expect(await record(register)).toMatchObject({ status: 'degraded', reason: 'RegisterNotOnline' });
    await register.stop();
  });

  it('runs on one replica at a time', async () => {
    const { database, stop } = await startTestRegister('system_register_alone');
    const inner = await tryAlone(database, async () => [await tryAlone(database, async () => 'both')]);
    expect(inner).toEqual([undefined]);
    await expect(tryAlone(database, async () => Promise.reject(new Error('failed')))).rejects.toThrow(
      'failed',
    );
    expect(await tryAlone(database, async () => 'after')).toBe('after');
    await stop();
  });

  it('creates nothing where a Register resource does', async () => {
    const register = await startTestRegister('system_register_left');
    register.ledger.onAnnounced('validator-0');
    await register.createRegister();
    expect(await record(register)).toMatchObject({ status: 'initializing', reason: 'NotCreated' });
    await register.stop();
  });
});
