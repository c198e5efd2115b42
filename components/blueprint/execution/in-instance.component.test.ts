import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { application, startPermits } from '../testing/permits.ts';
import type { Site } from '../testing/world.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;

const decision = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };

/** The decision weighs the score, which the applicant is not shown, and hands the number of the permit on. */
function weigh(site: Site): void {
  const [, , decide, collect] = site.actions as (Site['actions'][number] & { routes: object[] })[];
  Object.assign(decide ?? {}, { calculations: { weighed: { '+': [{ var: 'safetyScore' }, 1] } } });
  Object.assign(decide?.routes[0] ?? {}, { outputMapping: { '/payload/permitNumber': '/permitNumber' } });
  const schema = collect?.dataSchemas[0];
  Object.assign(schema?.properties ?? {}, { permitNumber: { type: 'string' } });
  Object.assign(schema ?? {}, { required: ['permitNumber'] });
}

describe('helpers about an instance', () => {
  let permits: Permits;
  beforeAll(async () => {
    permits = await startPermits('blueprint_in_instance');
  });
  afterAll(() => permits.world.stop());

  const ask = (what: string, token: string, body: object, headers = {}) => {
    const { blueprintId, instanceId } = permits.at;
    return permits.world.call('POST', `/api/execution/${what}`, {
      token,
      headers,
      body: { blueprintId, instanceId, ...body },
    });
  };
  const code = async (...asked: Parameters<typeof ask>) => {
    const { status, body } = await ask(...asked);
    return [status, body.code];
  };

  async function take(actionId: number, payload: object, turn: { token: string; wallet: string }) {
    expect((await permits.execute(actionId, payload, turn)).status).toBeLessThan(300);
    await permits.world.runner.settle();
  }

  async function review(devMode: boolean) {
    await permits.prepare(devMode, weigh);
    const { applicant, board } = permits.wallets;
    await take(0, application, { token: 'user', wallet: applicant });
    await take(1, { safetyScore: 80 }, { token: 'designer', wallet: board });
  }

  it.each([false, true])(
    'evaluate over what the caller reads, as the submission will be (development mode: %s)',
    async (devMode) => {
      await review(devMode);
      const asked = { actionId: 2, data: decision };
      const own = await ask('calculate', 'admin', asked);
      expect([own.status, own.headers['cache-control']]).toEqual([200, 'no-store']);
      expect(own.body.processedData).toEqual({ ...decision, weighed: 81 });
      // without the instance nothing is there before the action, and the applicant was not shown the score
      const bare = await ask('calculate', 'admin', { ...asked, instanceId: undefined });
      expect(bare.body.processedData.weighed).toBe(1);
      expect((await ask('calculate', 'user', asked)).body.processedData.weighed).toBe(1);
      await take(2, decision, { token: 'admin', wallet: permits.wallets.office });
      const state = await permits.world.call('GET', `/api/instances/${permits.at.instanceId}/state`, {
        token: 'admin',
      });
      expect(state.body.merged.weighed).toBe(81);
    },
  );

  it('lay the data over the prefill of the wallet that takes the action', async () => {
    await review(false);
    await take(2, decision, { token: 'admin', wallet: permits.wallets.office });
    const asked = { actionId: 3, data: { collected: true } };
    expect((await ask('validate', 'user', asked)).body).toEqual({ isValid: true, errors: [] });
    expect((await ask('validate', 'admin', asked)).body).toMatchObject({ isValid: false });
    expect((await ask('validate', 'user', { ...asked, instanceId: undefined })).body.isValid).toBe(false);
    const { body } = await ask('disclose', 'user', { actionId: 3, data: { permitNumber: 'P7' } });
    expect(body.disclosures).toEqual([
      { participantId: 'applicant', disclosedData: { permitNumber: 'P7' }, fieldCount: 1 },
    ]);
    const route = async (actionId: number, data: object) =>
      (await ask('route', 'user', { actionId, data })).body.isWorkflowComplete;
    expect(await route(3, {})).toBe(true);
    // the action that is current goes on when another one ends its branch
    expect(await route(2, { ...decision, decision: 'refused' })).toBe(false);
  });

  it('are refused without the right to read the instance, and about another definition', async () => {
    await review(false);
    const asked = { actionId: 2, data: decision };
    for (const what of ['validate', 'calculate', 'route', 'disclose']) {
      expect(await code(what, 'stranger', asked)).toEqual([403, 'INSTANCE_ACCESS_DENIED']);
      const unknown = { ...asked, instanceId: randomUUID() };
      expect(await code(what, 'user', unknown)).toEqual([404, 'INSTANCE_NOT_FOUND']);
    }
    const refused = async (body: object) => code('route', 'admin', { ...asked, ...body });
    expect(await refused({ instanceId: 'x' })).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused({ blueprintId: 'another' })).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused({ registerId: 'f'.repeat(32) })).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused({ publicationTxId: 'f'.repeat(64) })).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused({ draft: true })).toEqual([400, 'INVALID_REQUEST']);
    expect(await refused({ actionId: 9 })).toEqual([404, 'ACTION_NOT_FOUND']);
    const forged = { 'x-delegation-token': 'forged' };
    expect(await code('route', 'admin', asked, forged)).toEqual([403, 'DELEGATION_INVALID']);
    const { registerId } = permits.at;
    expect((await ask('route', 'admin', { ...asked, registerId, draft: false })).status).toBe(200);
  });

  it('refuse what was disclosed to the caller and cannot be opened', async () => {
    await review(false);
    const txId = permits.sealed().at(-1)?.record.txId ?? '';
    const { payloads } = permits.world.sealing;
    const payload = JSON.parse(Buffer.from(payloads.get(txId) ?? []).toString());
    for (const group of payload.groups) group.jwe.tag = 'A'.repeat(22);
    payloads.set(txId, Buffer.from(JSON.stringify(payload)));
    const { status, body } = await ask('calculate', 'admin', { actionId: 2, data: decision });
    expect([status, body.code, body.missing]).toEqual([422, 'STATE_INCOMPLETE', [1]]);
  });
});
