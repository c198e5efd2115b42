import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { installation } from '../harness/shared-system.ts';
import { application, sitePermit } from '../harness/workflow.ts';

const here = installation();
const blueprintId = 'site-permit-approval';
const rehearsal = z.looseObject({
  rehearsalId: z.string(),
  status: z.string(),
  currentActingRole: z.string().nullable(),
  sandboxRegisterId: z.string(),
});

describe('a rehearsal through the gateway', () => {
  let designer: Person;
  let registerId = '';

  beforeAll(async () => {
    const organization = await createOrganization(here.api, here.token(), 'planning');
    designer = await createPerson(here.api, here.token(), organization, {
      name: 'planning',
      role: 'Administrator',
    });
    registerId = await createRegister(
      here.api,
      designer.token,
      { title: 'Permits', devMode: false },
      designer.wallet,
    );
    await waitOnline(here.api, designer.token, registerId);
    const json = sitePermit({ 'planning-office': designer.wallet.walletAddress });
    await here.api.expect(201, 'POST', '/api/blueprints', { token: designer.token, json });
  });

  const path = `/api/blueprints/${blueprintId}`;
  const send = async (method: string, rest: string, json: object, status: number | readonly number[]) =>
    here.api.expect(status, method, `${path}${rest}`, { token: designer.token, json });

  test('walks all roles in the sandbox and opens the way to publish', async () => {
    await send('POST', '/publish', { registerId }, 409);
    const started = rehearsal.parse((await send('POST', '/rehearsals', { mode: 'full' }, 201)).body);
    expect(started).toMatchObject({ status: 'InProgress', currentActingRole: 'applicant' });
    const steps: readonly (readonly [number, object])[] = [
      [0, application],
      [1, { safetyScore: 80 }],
      [2, { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' }],
      [3, { collected: true }],
    ];
    let last = started;
    for (const [actionId, payload] of steps) {
      const step = { actionId, payload };
      last = rehearsal.parse(
        (await send('POST', `/rehearsals/${started.rehearsalId}/steps`, step, 200)).body,
      );
    }
    expect(last.status).toBe('Passed');
    const published = await send('POST', '/publish', { registerId }, 200);
    expect(published.body).toMatchObject({ overridden: false, sealed: true });
  }, 180_000);
});
