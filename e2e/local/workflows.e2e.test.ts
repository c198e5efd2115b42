import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Person } from '../harness/governance.ts';
import { connectHub, type HubClient } from '../harness/hub.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { until } from '../harness/wait.ts';
import { application, createParties, sitePermit, workflows } from '../harness/workflow.ts';

const here = installation();
const program = fileURLToPath(new URL('../../components/cli/main.ts', import.meta.url));
const filesSchema = z.object({ disclosures: z.array(z.object({ files: z.array(z.string()) })) });
const blueprintId = 'site-permit-approval';
const events = [
  'ActionAvailable',
  'ActionConfirmed',
  'ActionRejected',
  'InstanceAdvanced',
  'WorkflowCompleted',
];

/** Verifies a disclosure file with the program that readers have. */
function disclosure(folder: string, text: string, options: readonly string[]) {
  const file = join(folder, 'shown.json');
  writeFileSync(file, text);
  const args = [program, 'disclosure', file, ...options];
  return spawnSync(process.execPath, args, { encoding: 'utf8' });
}

describe('a workflow of three organisations on an encrypted register, through the gateway', () => {
  let applicant: Person;
  let officer: Person;
  let inspector: Person;
  let stranger: Person;
  let registerId = '';
  let completed = '';
  let flow: ReturnType<typeof workflows>;

  beforeAll(async () => {
    flow = workflows(here.api);
    ({ applicant, officer, inspector, stranger } = await createParties(here.api, here.token()));
    registerId = await createRegister(
      here.api,
      officer.token,
      { title: 'Permits', devMode: false },
      officer.wallet,
    );
    await waitOnline(here.api, officer.token, registerId);
    const definition = sitePermit({
      'planning-office': officer.wallet.walletAddress,
      'safety-board': inspector.wallet.walletAddress,
    });
    await flow.publish(officer, definition, registerId);
  });

  const step = (instanceId: string, actionId: number, payload: object) => ({
    instanceId,
    registerId,
    blueprintId,
    actionId,
    payload,
  });

  const follow = async (person: Person): Promise<HubClient> => {
    const client = await connectHub(new URL('/hubs/blueprint', here.api.baseUrl), {
      token: person.token,
      transport: 'WebSockets',
      targets: events,
    });
    await client.invoke('SubscribeToWallet', person.wallet.walletAddress);
    return client;
  };

  test('each party reads its own fields, a rejection goes back, and the end is reached', async () => {
    const instanceId = await flow.start(applicant, blueprintId, registerId);
    expect(await flow.read(applicant, instanceId)).toMatchObject({ state: 'Pending', currentActionIds: [0] });
    const [ofInspector, ofOfficer] = [await follow(inspector), await follow(officer)];

    const applied = await flow.complete(applicant, step(instanceId, 0, application));
    expect(applied).toMatchObject({ status: 'Complete', percentComplete: 100, error: null });
    await flow.reach(applicant, instanceId, applied.transactionHash ?? '');
    await until('the safety board hears of its action', 10_000, async () =>
      ofInspector.signals.some(({ target, args }) => target === 'ActionAvailable' && args[1] === '1')
        ? true
        : undefined,
    );
    await until('the action is in the inbox of the inspector', 15_000, async () => {
      const { body } = await here.api.expect(200, 'GET', '/api/me/inbox?category=Action', {
        token: inspector.token,
      });
      const text = JSON.stringify(body);
      return text.includes('Safety review: Temporary site permit') && text.includes(instanceId)
        ? true
        : undefined;
    });
    const fields = async (person: Person) =>
      Object.keys((await flow.disclosed(person, instanceId)).disclosedFields).sort();
    expect(await fields(inspector)).toEqual(['floorAreaM2', 'hazardous', 'riskTier', 'siteReference']);
    expect(await fields(officer)).toHaveLength(7);
    const path = `/api/workflows/${instanceId}/disclosures`;
    const other = await here.api.send('GET', path, { token: stranger.token });
    expect(JSON.stringify(other.body)).not.toContain('AB-1234');

    const record = await here.api.expect(
      200,
      'GET',
      `/api/registers/${registerId}/transactions/${applied.transactionHash}`,
      { token: officer.token },
    );
    const { payload = '' } = z.looseObject({ payload: z.string().optional() }).parse(record.body);
    const sealed = Buffer.from(payload, 'base64').toString();
    expect(sealed).toContain('jwe-groups');
    expect(sealed).not.toMatch(/AB-1234|siteReference|example\.org/);

    const refused = await here.api.expect(200, 'POST', `/api/instances/${instanceId}/actions/1/reject`, {
      token: inspector.token,
      json: { reason: 'The floor area is not that of the plans.' },
    });
    expect(refused.body).toMatchObject({ targetActionId: 0, isTerminal: false });
    const corrected = await flow.complete(
      applicant,
      step(instanceId, 0, { ...application, floorAreaM2: 700 }),
    );
    expect(corrected.error).toBeNull();
    const reviewed = await flow.complete(inspector, step(instanceId, 1, { safetyScore: 80 }));
    expect(reviewed.error).toBeNull();
    const decision = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };
    const decided = await flow.complete(officer, step(instanceId, 2, decision));
    expect(decided.error).toBeNull();
    const collected = await flow.complete(applicant, step(instanceId, 3, { collected: true }));
    const ended = await flow.reach(applicant, instanceId, collected.transactionHash ?? '');
    expect(ended).toMatchObject({ state: 'Completed', currentActionIds: [], completedActionCount: 5 });
    await until('the parties hear of the end', 10_000, async () =>
      [ofInspector, ofOfficer].every(({ signals }) =>
        signals.some(({ target }) => target === 'WorkflowCompleted'),
      )
        ? true
        : undefined,
    );
    expect(ofOfficer.signals.filter(({ target }) => target === 'ActionRejected')).toHaveLength(1);
    await Promise.all([ofInspector.stop(), ofOfficer.stop()]);
    completed = instanceId;
  }, 180_000);

  test('instances read as before when their rows are deleted and made again from the ledger', async () => {
    const path = `/api/instances/${completed}`;
    const before = await here.api.expect(200, 'GET', path, { token: applicant.token });
    const projection = `/api/admin/workflows/${registerId}/projection`;
    await here.api.expect(403, 'POST', `${projection}/rebuild`, { token: officer.token });
    await here.api.expect(202, 'POST', `${projection}/rebuild`, { token: here.token() });
    const after = await until('the rows are made again', 20_000, async () => {
      const answer = await here.api.expect([200, 503], 'GET', path, { token: applicant.token });
      return answer.status === 200 ? answer.body : undefined;
    });
    expect(after).toEqual(before.body);
    const { body } = await here.api.expect(200, 'GET', projection, { token: here.token() });
    expect(body).toMatchObject({ registerId, isRebuilding: false });
  });

  test('a party proves to a third party offline what it was shown, and one changed byte proves nothing', async () => {
    const instanceId = await flow.start(applicant, blueprintId, registerId);
    const applied = await flow.complete(applicant, step(instanceId, 0, application));
    await flow.reach(applicant, instanceId, applied.transactionHash ?? '');
    const { body } = await here.api.expect(
      200,
      'GET',
      `/api/workflows/${instanceId}/disclosures?proof=true`,
      {
        token: inspector.token,
      },
    );
    const [text = ''] = filesSchema.parse(body).disclosures[0]?.files ?? [];
    const folder = mkdtempSync(join(tmpdir(), 'chancery-disclosure-'));
    try {
      // the inspector's organisation does not subscribe to the register: the key comes from another source
      const path = `/api/registers/${registerId}/checkpoint/key`;
      const key = await here.api.expect(200, 'GET', path, { token: officer.token });
      const shown = disclosure(folder, text, ['--key', String(key.body).trim()]);
      expect([shown.status, shown.stderr]).toEqual([0, '']);
      expect(shown.stdout).toContain('"riskTier": "high"');
      expect(shown.stdout).not.toContain('example.org');
      expect(shown.stdout).toContain(applied.transactionHash);
      for (const at of [1, 2, 3, 4, 5].map((part) => Math.floor((text.length * part) / 6))) {
        const changed = `${text.slice(0, at)}${text[at] === '1' ? '2' : '1'}${text.slice(at + 1)}`;
        const refused = disclosure(folder, changed, []);
        expect([at, refused.status, refused.stdout]).toEqual([at, 1, '']);
        expect(refused.stderr).toContain('Does not verify');
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 120_000);

  test('what is wrong is refused with its code, and a repeated request is one operation', async () => {
    const instanceId = await flow.start(applicant, blueprintId, registerId);
    const code = async (answer: ReturnType<typeof flow.take>) => {
      const { status, body } = await answer;
      return [status, z.looseObject({ code: z.string().optional() }).parse(body).code];
    };
    expect(await code(flow.take(inspector, step(instanceId, 1, { safetyScore: 1 })))).toEqual([
      409,
      'ACTION_NOT_CURRENT',
    ]);
    expect(await code(flow.take(applicant, step(instanceId, 0, { ...application, floorAreaM2: 0 })))).toEqual(
      [422, 'PAYLOAD_INVALID'],
    );
    expect(await code(flow.take(applicant, step(randomUUID(), 0, application)))).toEqual([
      404,
      'INSTANCE_NOT_FOUND',
    ]);
    const key = randomUUID();
    const request = { ...step(instanceId, 0, { ...application, floorAreaM2: 40 }), key };
    const [first, again] = [await flow.take(applicant, request), await flow.take(applicant, request)];
    const id = ({ body }: typeof first) => z.object({ operationId: z.string() }).parse(body).operationId;
    expect([first.status, again.status, id(again)]).toEqual([202, 202, id(first)]);
    const foreign = await here.api.send('GET', `/api/operations/${id(first)}`, { token: stranger.token });
    expect(foreign.status).toBe(404);
    await expect
      .poll(async () => (await flow.read(applicant, instanceId)).currentActionIds, { timeout: 20_000 })
      .toEqual([2]);
  }, 60_000);

  test('a wallet of somebody else cannot be followed', async () => {
    const client = await connectHub(new URL('/hubs/blueprint', here.api.baseUrl), {
      token: stranger.token,
      transport: 'WebSockets',
      targets: events,
    });
    await expect(client.invoke('SubscribeToWallet', officer.wallet.walletAddress)).rejects.toThrow(
      'Unauthorized',
    );
    await client.stop();
  });
});
