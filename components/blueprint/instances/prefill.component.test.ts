import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { application, startPermits } from '../testing/permits.ts';
import type { Site } from '../testing/world.ts';

type Permits = Awaited<ReturnType<typeof startPermits>>;

const decision = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };

/** The applicant's last action begins with the number of the permit that was granted. */
function handOn(site: Site): void {
  const [, , decide, collect] = site.actions as (Site['actions'][number] & { routes: object[] })[];
  Object.assign(decide?.routes[0] ?? {}, { outputMapping: { '/payload/permitNumber': '/permit/number' } });
  Object.assign(collect?.dataSchemas[0]?.properties ?? {}, {
    permit: { type: 'object', properties: { number: { type: 'string' } } },
  });
}

describe('prefill', () => {
  let permits: Permits;
  beforeAll(async () => {
    permits = await startPermits('blueprint_prefill');
  });
  afterAll(() => permits.world.stop());

  const detail = (token: string, actionId: number, headers: Readonly<Record<string, string>> = {}) =>
    permits.world.call('GET', `/api/instances/${permits.at.instanceId}/actions/${actionId}`, {
      token,
      headers,
    });
  const prefill = async (token: string, actionId: number) => (await detail(token, actionId)).body.prefill;

  async function take(actionId: number, payload: object, turn: { token: string; wallet: string }) {
    const { status, body } = await permits.execute(actionId, payload, turn);
    expect([status, body.code]).toEqual([status === 200 ? 200 : 202, undefined]);
    await permits.world.runner.settle();
  }

  /** Walks up to the action that begins with what the step before wrote. */
  async function decide(devMode: boolean) {
    await permits.prepare(devMode, handOn);
    const { applicant, board, office } = permits.wallets;
    await take(0, application, { token: 'user', wallet: applicant });
    await take(1, { safetyScore: 80 }, { token: 'designer', wallet: board });
    expect(await prefill('user', 3)).toEqual({});
    await take(2, decision, { token: 'admin', wallet: office });
  }

  it.each([false, true])(
    'is shown to the wallet that takes the action, and to no other (development mode: %s)',
    async (devMode) => {
      await decide(devMode);
      const { body, headers, status } = await detail('user', 3);
      expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
      expect(body).toMatchObject({
        actionId: 3,
        isCurrent: true,
        prefill: { permit: { number: 'P000001' } },
      });
      // the office wrote it, and the board was shown the decision alone
      expect(await prefill('admin', 3)).toEqual({});
      expect(await prefill('designer', 3)).toEqual({});
      expect((await detail('stranger', 3)).status).toBe(403);
      expect(await prefill('user', 0)).toEqual({});
      await take(3, { collected: true }, { token: 'user', wallet: permits.wallets.applicant });
      expect(await prefill('user', 3)).toEqual({});
      const path = `/api/workflows/${permits.at.instanceId}/disclosures`;
      const { disclosures } = (await permits.world.call('GET', path, { token: 'user' })).body;
      expect(disclosures.at(-1).data).toEqual({ collected: true, permit: { number: 'P000001' } });
    },
  );

  it('needs the authority of the caller only where something has to be opened', async () => {
    await decide(false);
    const forged = { 'x-delegation-token': 'forged' };
    const refused = await detail('user', 3, forged);
    expect([refused.status, refused.body.code]).toEqual([403, 'DELEGATION_INVALID']);
    expect((await detail('designer', 3, forged)).status).toBe(200);
    const txId = permits.sealed().at(-1)?.record.txId ?? '';
    const { payloads } = permits.world.sealing;
    const payload = JSON.parse(Buffer.from(payloads.get(txId) ?? []).toString());
    for (const group of payload.groups) group.jwe.tag = 'A'.repeat(22);
    payloads.set(txId, Buffer.from(JSON.stringify(payload)));
    expect(await prefill('user', 3)).toBeNull();
  });
});
