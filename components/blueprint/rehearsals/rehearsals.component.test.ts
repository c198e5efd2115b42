import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { execDefHash } from '#core/blueprint/hashes.ts';
import { refusal } from '../errors.ts';
import { application } from '../testing/permits.ts';
import { organizationId, sitePermit, startWorld, type World } from '../testing/world.ts';
import type { EndDeps } from './ending.ts';
import { tidyRehearsals } from './jobs.ts';

const draft = '/api/blueprints/site-permit-approval';
const base = `${draft}/rehearsals`;
const site = sitePermit();
const dayMs = 86_400_000;
const approval = { decision: 'approved', permitNumber: 'P000001', validFrom: '2027-01-01' };
const small = { ...application, floorAreaM2: 20, estimatedCostMinor: 1_000 };

describe('rehearsals', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld('blueprint_rehearsals');
    world.wallets.set('admin', ['w-owner']);
    world.wallets.set('stranger', ['w-owner']);
    await world.call('POST', '/api/blueprints', { body: site });
  });
  afterAll(() => world.stop());
  beforeEach(async () => {
    world.keys.hooks.beforeErase = undefined;
    world.keys.hooks.beforeSign = undefined;
    delete world.answers.publish;
    await world.call('PUT', draft, { body: site });
  });

  const start = (token = 'admin', at = base) => world.call('POST', at, { token, body: { mode: 'full' } });
  const started = async (token = 'admin') => {
    const { status, body } = await start(token);
    expect([status, body.status]).toEqual([201, 'InProgress']);
    return body;
  };
  const get = (id: string, token = 'admin') => world.call('GET', `${base}/${id}`, { token });
  const role = (id: string, name: string) =>
    world.call('POST', `${base}/${id}/role`, { body: { role: name } });
  const step = (id: string, actionId: number, payload: object, more: object = {}) =>
    world.call('POST', `${base}/${id}/steps`, { body: { actionId, payload, ...more } });
  const code = async (answer: ReturnType<typeof step>) => {
    const { status, body } = await answer;
    return [status, body.code];
  };
  const passes = () => world.db.read.selectFrom('rehearsal_passes').selectAll().execute();
  const statusesOf = (body: { steps: { status: string }[] }) => body.steps.map(({ status }) => status);
  const keysOf = (id: string) => [...world.keys.own.names.keys()].filter((name) => name.includes(id));
  const deps = (): EndDeps => ({
    db: world.db,
    clock: world.clock,
    log: world.log,
    ownWallets: world.keys.own,
    meter: { rehearsed: () => undefined },
  });

  it('start with the roles of the draft, in one register of the organisation', async () => {
    const { headers, body } = await start();
    expect(headers['location']).toBe(`${base}/${body.rehearsalId}`);
    expect(body).toMatchObject({
      blueprintId: 'site-permit-approval',
      execDefHash: execDefHash(site),
      mode: 'full',
      currentActingRole: 'applicant',
      status: 'InProgress',
      outcome: 'InProgress',
      routesTaken: [],
      log: [{ kind: 'info' }],
    });
    expect(statusesOf(body)).toEqual(['Current', 'Pending', 'Pending', 'Pending']);
    expect(body.routesNotTaken).toHaveLength(6);
    expect(body.endedAt).toBeUndefined();
    expect(keysOf(body.rehearsalId)).toHaveLength(3);
    const sandbox = world.registers.get(body.sandboxRegisterId);
    const [publication] = sandbox?.publications ?? [];
    expect(sandbox?.devMode).toBe(true);
    expect(publication?.blueprintId).toBe(`rehearsal-${body.rehearsalId}`);
    const copied = publication?.definition['participants'] as { id: string; walletAddress?: string }[];
    const original = site['participants'] as typeof copied;
    expect(copied.map(({ walletAddress }) => walletAddress !== undefined)).toEqual([false, true, true]);
    expect(copied[1]?.walletAddress).not.toBe(original[1]?.walletAddress);
    expect(copied[1]?.walletAddress).not.toBe(copied[2]?.walletAddress);
    const again = await started('designer');
    expect(again.sandboxRegisterId).toBe(body.sandboxRegisterId);
    expect(await world.telemetry.registry.metrics()).toContain('chancery_designer_sandbox_provision_total 1');
  });

  it('pass when the workflow is completed, and then the draft is published without an override', async () => {
    const { rehearsalId: id } = await started();
    expect(await code(step(id, 2, approval))).toEqual([422, 'STEP_NOT_CURRENT']);
    expect(await code(step(id, 9, {}))).toEqual([422, 'STEP_NOT_CURRENT']);
    expect((await role(id, 'safety-board')).body.currentActingRole).toBe('safety-board');
    expect(await code(step(id, 0, application))).toEqual([422, 'ROLE_MISMATCH']);
    expect(await code(role(id, 'toString'))).toEqual([422, 'ROLE_UNKNOWN']);
    await role(id, 'applicant');
    const faulty = await step(id, 0, { ...application, floorAreaM2: 0 });
    expect([faulty.status, faulty.body.code]).toEqual([422, 'PAYLOAD_INVALID']);
    expect(faulty.body.errors[0]).toBeDefined();

    const applied = await step(id, 0, application);
    expect([applied.status, applied.body.currentActingRole]).toEqual([200, 'safety-board']);
    expect(statusesOf(applied.body)).toEqual(['Done', 'Current', 'Pending', 'Pending']);
    expect(await code(step(id, 0, application))).toEqual([422, 'STEP_NOT_CURRENT']);

    const rejected = await step(id, 1, {}, { rejection: { reason: 'no plans' } });
    expect([rejected.body.status, rejected.body.currentActingRole]).toEqual(['InProgress', 'applicant']);
    expect(statusesOf(rejected.body)).toEqual(['Current', 'Pending', 'Pending', 'Pending']);
    await step(id, 0, application);
    const reviewed = await step(id, 1, { safetyScore: 80 });
    expect(reviewed.body.currentActingRole).toBe('planning-office');
    await step(id, 2, approval);
    expect(await passes()).toEqual([]);
    expect((await get(id)).body.status).toBe('InProgress');
    const ended = await step(id, 3, { collected: true });
    expect(ended.body).toMatchObject({ status: 'Passed', outcome: 'Passed', endedAt: expect.any(String) });
    expect(statusesOf(ended.body)).toEqual(['Done', 'Done', 'Done', 'Done']);
    const routes = (of: { routeId: string }[]) => of.map(({ routeId }) => routeId);
    expect(routes(ended.body.routesTaken)).toEqual(['risky', 'risky', 'reviewed', 'approved', 'done']);
    expect(routes(ended.body.routesNotTaken)).toEqual(['plain', 'refused']);
    const kinds = ended.body.log.map((entry: { kind: string }) => entry.kind);
    expect(kinds.filter((kind: string) => kind === 'sealed')).toHaveLength(6);
    expect(kinds).toContain('error');
    expect((await get(id)).body).toEqual(ended.body);

    expect(keysOf(id)).toEqual([]);
    expect(await code(step(id, 3, { collected: true }))).toEqual([422, 'REHEARSAL_ENDED']);
    expect(await code(role(id, 'applicant'))).toEqual([422, 'REHEARSAL_ENDED']);
    expect(await passes()).toMatchObject([
      {
        organization_id: organizationId,
        blueprint_id: 'site-permit-approval',
        exec_def_hash: execDefHash(site),
        rehearsal_id: id,
        passed_by: 'ann',
      },
    ]);
    expect(await world.telemetry.registry.metrics()).toContain(
      'chancery_designer_rehearsal_run_total{outcome="Passed"} 1',
    );
    const registerId = 'a'.repeat(32);
    world.addRegister(registerId);
    const published = await world.call('POST', `${draft}/publish`, { body: { registerId } });
    expect([published.status, published.body.overridden]).toEqual([200, false]);
  });

  it('count for the behaviour that they began with', async () => {
    const { rehearsalId: id } = await started();
    const changed = structuredClone(site);
    Object.assign(changed.actions[3] ?? {}, { requiredPriorActions: [0, 2] });
    await world.call('PUT', draft, { body: changed });
    expect(execDefHash(changed)).not.toBe(execDefHash(site));
    await step(id, 0, small);
    const refused = await step(id, 2, { decision: 'refused', reasonCode: 'R-UNSAFE' });
    expect(refused.body.status).toBe('Passed');
    expect(statusesOf(refused.body)).toEqual(['Done', 'Skipped', 'Done', 'Skipped']);
    const hashes = (await passes()).map(({ exec_def_hash }) => exec_def_hash);
    expect(hashes).not.toContain(execDefHash(changed));
    const registerId = 'b'.repeat(32);
    world.addRegister(registerId);
    const published = await world.call('POST', `${draft}/publish`, { body: { registerId } });
    expect([published.status, published.body.code]).toEqual([409, 'REHEARSAL_REQUIRED']);
  });

  it('fail with a terminal rejection', async () => {
    const before = (await passes()).length;
    const { rehearsalId: id } = await started();
    await step(id, 0, application);
    await step(id, 1, { safetyScore: 80 });
    await step(id, 2, approval);
    const ended = await step(id, 3, {}, { rejection: {} });
    expect([ended.status, ended.body.status]).toEqual([200, 'Failed']);
    expect(statusesOf(ended.body)).toEqual(['Done', 'Done', 'Done', 'Skipped']);
    expect(await passes()).toHaveLength(before);
    expect(keysOf(id)).toEqual([]);
    expect((await world.call('DELETE', `${base}/${id}`)).status).toBe(204);
    expect((await get(id)).body.status).toBe('Failed');
  });

  it('fail with a fault that data brings to light', async () => {
    const before = (await passes()).length;
    const faulty = structuredClone(site);
    const feeMinor = { '/': [5_000, { var: 'estimatedCostMinor' }] };
    const [first] = faulty.actions as { calculations?: object }[];
    Object.assign(first?.calculations ?? {}, { feeMinor });
    await world.call('PUT', draft, { body: faulty });
    const { rehearsalId: id } = await started();
    const ended = await step(id, 0, { ...application, estimatedCostMinor: 0 });
    expect([ended.status, ended.body.status]).toEqual([200, 'Failed']);
    expect(ended.body.log.at(-1)).toMatchObject({ kind: 'error', message: expect.stringContaining('CALC_') });
    expect(await passes()).toHaveLength(before);
  });

  it('are abandoned by DELETE and by a new start of the same person', async () => {
    const before = (await passes()).length;
    const first = await started();
    const others = await started('designer');
    expect((await get(first.rehearsalId)).body.status).toBe('InProgress');
    const second = await started();
    expect((await get(first.rehearsalId)).body.status).toBe('Abandoned');
    expect((await get(others.rehearsalId)).body.status).toBe('InProgress');
    expect(keysOf(first.rehearsalId)).toEqual([]);
    expect((await world.call('DELETE', `${base}/${second.rehearsalId}`)).status).toBe(204);
    const ended = (await get(second.rehearsalId)).body;
    expect([ended.status, statusesOf(ended)]).toEqual(['Abandoned', Array(4).fill('Skipped')]);
    expect(await code(step(second.rehearsalId, 0, application))).toEqual([422, 'REHEARSAL_ENDED']);
    expect(await passes()).toHaveLength(before);
  });

  it('of one person that start together leave one under way', async () => {
    const answers = await Promise.all([start(), start(), start()]);
    for (const { status } of answers) expect([201, 422]).toContain(status);
    const rows = await world.db.read
      .selectFrom('rehearsals')
      .select('id')
      .where('status', '=', 'InProgress')
      .where('started_by', '=', 'ann')
      .execute();
    expect(rows).toHaveLength(1);
    const all = await world.db.read
      .selectFrom('rehearsals')
      .select('id')
      .where('status', '=', 'InProgress')
      .execute();
    const roles = [...world.keys.own.names.keys()].filter((key) => key.startsWith('rehearsal-'));
    expect(roles).toHaveLength(3 * all.length);
  });

  it('are those of one organisation, for its designers', async () => {
    const { rehearsalId: id } = await started();
    expect((await get(id, 'designer')).status).toBe(200);
    for (const answer of [
      get(id, 'stranger'),
      world.call('DELETE', `${base}/${id}`, { token: 'stranger' }),
      world.call('POST', `${base}/${id}/steps`, {
        token: 'stranger',
        body: { actionId: 0, payload: application },
      }),
      world.call('POST', `${base}/${id}/role`, { token: 'stranger', body: { role: 'applicant' } }),
      world.call('GET', `/api/blueprints/another/rehearsals/${id}`),
      get('019aaaaa-0000-7000-8000-000000000000'),
    ])
      expect(await code(answer)).toEqual([404, 'REHEARSAL_NOT_FOUND']);
    expect(await code(start('stranger'))).toEqual([404, 'BLUEPRINT_NOT_FOUND']);
    expect((await start('user')).status).toBe(403);
    expect((await get(id, 'user')).status).toBe(403);
    expect((await get(id)).body.status).toBe('InProgress');
    expect((await get('no-id')).status).toBe(404);
  });

  it('need a valid definition and the mode full', async () => {
    const mode = await world.call('POST', base, { body: { mode: 'quick' } });
    expect([mode.status, mode.body.code]).toEqual([422, 'REHEARSAL_MODE_UNSUPPORTED']);
    const broken = structuredClone(site);
    Object.assign(broken.actions[0] ?? {}, { sender: 'nobody' });
    await world.call('PUT', draft, { body: broken });
    const refused = await start();
    expect([refused.status, refused.body.code]).toEqual([409, 'BLUEPRINT_INVALID']);
    expect(refused.body.errors[0].code).toMatch(/^VAL_BP_/);
  });

  it('that could not be prepared leave neither keys nor a rehearsal under way', async () => {
    world.answers.publish = () => {
      throw refusal('REGISTER_UNAVAILABLE');
    };
    const keys = world.keys.own.names.size;
    expect(await code(start('designer'))).toEqual([503, 'REGISTER_UNAVAILABLE']);
    const rows = await world.db.read
      .selectFrom('rehearsals')
      .select('status')
      .where('started_by', '=', 'dan')
      .where('status', '=', 'InProgress')
      .execute();
    expect(rows).toEqual([]);
    expect(world.keys.own.names.size).toBeLessThanOrEqual(keys);
  });

  it('wait for a register that has not begun', async () => {
    const make = () => {
      delete world.answers.publish;
      throw refusal('GOVERNANCE_ROSTER_NOT_SEALED');
    };
    world.answers.publish = make;
    await started();
  });

  it('are tidied: idle ones end after 7 days, keys that were kept are erased, a walked one ends', async () => {
    const { rehearsalId: id } = await started();
    await tidyRehearsals(deps());
    expect((await get(id)).body.status).toBe('InProgress');
    world.keys.hooks.beforeErase = () => {
      throw refusal('WALLETS_UNAVAILABLE');
    };
    world.clock.advance(7 * dayMs + 1);
    await expect(tidyRehearsals(deps())).rejects.toMatchObject({ code: 'WALLETS_UNAVAILABLE' });
    expect((await get(id)).body.status).toBe('Abandoned');
    expect(keysOf(id)).toHaveLength(3);
    world.keys.hooks.beforeErase = undefined;
    await tidyRehearsals(deps());
    expect(keysOf(id)).toEqual([]);

    const { rehearsalId: walked } = await started();
    await step(walked, 0, small);
    await step(walked, 2, { decision: 'refused', reasonCode: 'R-UNSAFE' });
    await world.db.transact(async (tx) => {
      await tx.updateTable('rehearsals').set({ status: 'InProgress' }).where('id', '=', walked).execute();
      await tx.deleteFrom('rehearsal_passes').where('rehearsal_id', '=', walked).execute();
    });
    await tidyRehearsals(deps());
    const [pass] = (await passes()).filter(({ rehearsal_id }) => rehearsal_id === walked);
    expect(pass).toBeDefined();
    expect((await get(walked)).body.status).toBe('Passed');
  });

  it('are tidied although another one fails, and every failure is reported', async () => {
    const ids: string[] = [];
    for (const token of ['admin', 'designer']) ids.push((await started(token)).rehearsalId);
    world.keys.hooks.beforeErase = () => {
      throw refusal('WALLETS_UNAVAILABLE');
    };
    world.clock.advance(7 * dayMs + 1);
    await expect(tidyRehearsals(deps())).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'WALLETS_UNAVAILABLE',
      cause: { errors: [{ code: 'WALLETS_UNAVAILABLE' }, { code: 'WALLETS_UNAVAILABLE' }] },
    });
    const fault = new Error('the first erasure fails');
    const failures = [fault];
    world.keys.hooks.beforeErase = () => {
      const [next] = failures.splice(0, 1);
      if (next !== undefined) throw next;
    };
    await expect(tidyRehearsals(deps())).rejects.toMatchObject({ errors: [fault] });
    expect(ids.map((id) => keysOf(id).length).sort()).toEqual([0, 3]);
    await tidyRehearsals(deps());
    expect(ids.flatMap(keysOf)).toEqual([]);
  });
});
