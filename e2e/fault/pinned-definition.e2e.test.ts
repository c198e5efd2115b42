import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import type { Person } from '../harness/governance.ts';
import { createRegister, signIn, waitOnline } from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';
import { application, createOffice, sitePermit, workflows } from '../harness/workflow.ts';
import { type GivenParts, startGivenParts } from './given-parts.ts';

const blueprintId = 'site-permit-approval';
const definition = z.object({
  instanceId: z.string(),
  blueprintId: z.string(),
  blueprintDefinitionTxId: z.string(),
  blueprintExecDefHash: z.string().nullable(),
  blueprintVersion: z.number().nullable(),
  isPinnedToLatest: z.boolean().nullable(),
  pinState: z.string(),
});

describe('an instance whose definition is published anew while it runs', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let database: pg.Client;
  let api: Api;
  let officer: Person;
  let applicant: Person;
  let registerId = '';
  let pin = '';
  let instanceId = '';

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-pin-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, env: parts.env });
    database = new pg.Client({ connectionString: parts.env.DATABASE_URL });
    await database.connect();
    api = createApi(system.state.gatewayUrl);
    const root = (await signIn(api, system.state)).access_token;
    ({ applicant, officer } = await createOffice(api, root));
    const spec = { title: 'Permits', devMode: false };
    registerId = await createRegister(api, officer.token, spec, officer.wallet);
    await waitOnline(api, officer.token, registerId);
  });

  afterAll(async () => {
    await database.end();
    await system.stop();
    await parts.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const site = (): Record<string, unknown> =>
    sitePermit({
      'planning-office': officer.wallet.walletAddress,
      'safety-board': officer.wallet.walletAddress,
    });
  const step = (actionId: number, payload: object) => ({
    instanceId,
    registerId,
    blueprintId,
    actionId,
    payload,
  });
  const read = async (id = instanceId) => {
    const path = `/api/instances/${id}/definition`;
    return definition.parse((await api.expect(200, 'GET', path, { token: applicant.token })).body);
  };
  const transactions = async (): Promise<number> => {
    const path = `/api/registers/${registerId}/transactions?pageSize=1`;
    const { body } = await api.expect(200, 'GET', path, { token: officer.token });
    return z.object({ totalCount: z.number() }).parse(body).totalCount;
  };
  async function restartWith(change: () => Promise<unknown>): Promise<void> {
    await system.stop();
    await change();
    system = await startSystem({ dataDir, env: parts.env });
    api = createApi(system.state.gatewayUrl);
  }

  test('it keeps the definition that it began with, also without its draft', async () => {
    const flow = workflows(api);
    pin = await flow.publish(officer, site(), registerId);
    instanceId = await flow.start(applicant, blueprintId, registerId);
    const applied = await flow.complete(applicant, step(0, { ...application, floorAreaM2: 40 }));
    await flow.reach(applicant, instanceId, applied.transactionHash ?? '');
    const before = await read();
    expect(before).toMatchObject({
      blueprintDefinitionTxId: pin,
      blueprintExecDefHash: expect.stringMatching(/^[0-9a-f]{64}$/),
      blueprintVersion: 1,
      isPinnedToLatest: true,
      pinState: 'pinned',
    });

    const changed = site();
    const { actions } = changed as { actions: { title: string; dataSchemas: object[] }[] };
    Object.assign(actions[3] ?? {}, {
      title: 'Pick up',
      dataSchemas: [{ type: 'object', required: ['at'] }],
    });
    const path = `/api/blueprints/${blueprintId}`;
    const { token } = officer;
    const { headers } = await api.expect(200, 'GET', path, { token });
    const ifMatch = { 'if-match': headers.get('etag') ?? '' };
    await api.expect(200, 'PUT', path, { token, json: changed, headers: ifMatch });
    const json = { registerId, override: { confirm: true, reason: 'A journey from outside' } };
    const published = await api.expect(200, 'POST', `${path}/publish`, { token, json });
    expect(published.body).toMatchObject({ version: 2, sealed: true });
    expect(await read()).toEqual({ ...before, isPinnedToLatest: false });
    const newer = await flow.start(applicant, blueprintId, registerId);
    expect(await read(newer)).toMatchObject({ blueprintVersion: 2, isPinnedToLatest: true });

    await api.expect(204, 'DELETE', path, { token });
    const decision = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };
    const decided = await flow.complete(officer, step(2, decision));
    expect(decided.error).toBeNull();
    await flow.reach(applicant, instanceId, decided.transactionHash ?? '');
    const detail = await api.expect(200, 'GET', `/api/instances/${instanceId}/actions/3`, {
      token: applicant.token,
    });
    expect(detail.body).toMatchObject({ title: 'Collect permit', blueprintDefinitionTxId: pin });
  });

  test('without its publication it does not advance, and by no other version; the ledger gives it back', async () => {
    await restartWith(() =>
      database.query('delete from blueprint.publications where publication_tx_id = $1', [pin]),
    );
    expect(await read()).toEqual({
      instanceId,
      blueprintId,
      blueprintDefinitionTxId: pin,
      blueprintExecDefHash: null,
      blueprintVersion: null,
      isPinnedToLatest: null,
      pinState: 'unresolvable',
    });
    const sealed = await transactions();
    // The second version would take this payload.
    for (const payload of [{ collected: true }, { at: 'noon' }]) {
      const refused = await workflows(api).take(applicant, step(3, payload));
      expect([refused.status, refused.body]).toMatchObject([422, { code: 'VAL_BP_VERSION_001' }]);
    }
    expect(await transactions()).toBe(sealed);

    await restartWith(async () => {
      await database.query('delete from blueprint.publications');
      await database.query('delete from blueprint.publication_cursors');
    });
    const flow = workflows(api);
    await until('the publications are read again', 30_000, async () =>
      (await read()).pinState === 'pinned' ? true : undefined,
    );
    expect(await read()).toMatchObject({ blueprintVersion: 1, isPinnedToLatest: false });
    const collected = await flow.complete(applicant, step(3, { collected: true }));
    const ended = await flow.reach(applicant, instanceId, collected.transactionHash ?? '');
    expect(ended.state).toBe('Completed');
  });
});
