import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  GetRegisterStateRequestSchema,
  ListMemberRegistersRequestSchema,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { ledgerHandlers } from '../../ledger/service/rpc.ts';
import { projectedHeight } from '../../queries/projection/progress/store.ts';
import { runHousekeeping } from '../../system/housekeeping/jobs.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { storeInOldForm } from '../../testing/old-form.ts';
import { contextOf, organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';

const clock = manualClock(Date.now());

describe('changing and deleting a register', () => {
  let register: TestRegister;
  beforeAll(async () => {
    register = await startTestRegister('changes', { clock });
    register.wallets.own('second', testKey(2));
  });
  afterAll(() => register.stop());

  const path = (id: string) => `/api/registers/${id}`;
  const get = (id: string, token = 'admin') => register.call('GET', path(id), { token });
  const put = (id: string, body: unknown, token = 'admin') => register.call('PUT', path(id), { token, body });
  const remove = (id: string, token = 'admin') => register.call('DELETE', path(id), { token });

  it('writes title, description and metadata into the ledger and waits for the docket', async () => {
    const id = await register.createRegister('Before');
    const changing = put(id, { title: 'After', description: 'of money', metadata: { sandbox: 'true' } });
    await waitFor(() => register.validators.pooled(id).length > 0);
    await register.seal(id);
    const changed = await changing;
    expect(changed.status).toBe(200);
    expect(changed.body).toMatchObject({
      id,
      title: 'After',
      description: 'of money',
      metadata: { sandbox: 'true' },
      sandbox: true,
    });
    const history = await register.call('GET', `${path(id)}/governance/history`, { token: 'admin' });
    expect(history.body.items[0]).toMatchObject({ operationType: 'metadata-update', docketNumber: 1 });
  });

  it('answers 202 with the pending transaction when no docket is sealed', async () => {
    const id = await register.createRegister('Slow');
    const changed = await put(id, { title: 'Later' });
    expect(changed.status).toBe(202);
    expect(changed.body).toMatchObject({ title: 'Slow' });
    expect(changed.body.pendingChange.txId).toMatch(/^[0-9a-f]{64}$/);
    await register.seal(id);
    expect((await get(id)).body.title).toBe('Later');
  });

  it('advertises at once, because that is not a fact of the ledger', async () => {
    const id = await register.createRegister();
    const changed = await put(id, { advertise: true });
    expect([changed.status, changed.body.advertise]).toEqual([200, true]);
    expect(register.validators.pooled(id)).toEqual([]);
    expect((await get(id, 'stranger')).status).toBe(200);
  });

  it('refuses members that cannot be set, and callers who do not administer the register', async () => {
    const id = await register.createRegister();
    for (const member of ['id', 'status', 'purpose', 'devMode']) {
      const refused = await put(id, { title: 'x', [member]: true });
      expect([refused.status, refused.body.code], member).toEqual([400, 'IMMUTABLE_FIELD']);
    }
    expect((await put(id, { title: '' })).status).toBe(400);
    const user = await put(id, { title: 'x' }, 'user');
    expect(user.status).toBe(403);
    expect((await put(id, { title: 'x' }, 'stranger')).status).toBe(403);
    expect((await put('a'.repeat(32), { title: 'x' })).status).toBe(404);
    register.validators.refuseNext({ status: 429, body: { code: 'MEMPOOL_FULL' }, retryAfterSeconds: 3 });
    const full = await put(id, { title: 'x' });
    const place = { instance: `/api/registers/${id}`, path: `/api/registers/${id}` };
    expect(full.body).toMatchObject({ ...place, traceId: expect.any(String) });
    expect([full.status, full.body.code, full.headers['retry-after']]).toEqual([429, 'MEMPOOL_FULL', '3']);
  });

  it('deletes for an owner of the current roster: removed from lists, stopped at validators, without subscriptions', async () => {
    const id = await register.createRegister();
    const bundle = await register.propose(id).catch(() => undefined);
    expect(bundle).toBeUndefined();
    const user = await remove(id, 'user');
    expect([user.status, user.body.code]).toEqual([403, 'DELETE_NOT_ATTESTED']);
    expect((await remove(id, 'second')).status).toBe(403);
    expect((await remove(id, 'stranger')).status).toBe(404);
    const deleted = await remove(id);
    expect([deleted.status, deleted.text]).toEqual([204, '']);
    expect(String(deleted.headers['warning'])).toContain('replicas');
    expect((await get(id)).status).toBe(404);
    expect((await remove(id)).status).toBe(404);
    const list = await register.call('GET', '/api/registers?pageSize=100', { token: 'admin' });
    expect(list.body.items.some((one: { id: string }) => one.id === id)).toBe(false);
    await waitFor(() => register.validators.stopped.includes(`validator-0 ${id}`));
    const events = await register.database.pool.query(
      "select data from outbox where kind = 'RegisterDeleted' and key = $1",
      [id],
    );
    expect(events.rows).toEqual([{ data: { registerId: id, organizationIds: [organizationId] } }]);
  });

  it("still answers replays of a deleted register's last dockets, and accepts no new ones", async () => {
    const id = await register.createRegister();
    const send = { operationType: 'add-member', targetDid: `did:platform:w:${testKey(2).walletAddress}` };
    await register.call('POST', `${path(id)}/governance/propose`, {
      token: 'admin',
      body: { ...send, targetRole: 'Admin' },
    });
    const last = await register.seal(id);
    const next = await register.call('POST', `${path(id)}/policy/update`, {
      token: 'admin',
      body: { policy: {}, updatedBy: `did:platform:w:${testKey(1).walletAddress}` },
    });
    expect(next.status).toBe(202);
    const coming = await register.propose(id);
    expect((await remove(id, 'second')).status).toBe(204);
    expect(await register.ledger.writeDocket(last)).toMatchObject({ outcome: 'replayed' });
    await expect(register.ledger.writeDocket(coming)).rejects.toMatchObject({ code: 'REGISTER_NOT_FOUND' });
  });

  it('protects registers of the system', async () => {
    const key = testKey(7);
    register.wallets.own('system', key);
    const begun = await register.call('POST', '/api/registers/initiate', {
      token: 'system',
      body: { title: 'System', purpose: 'System' },
    });
    const { registerId, nonce } = begun.body;
    const body = { registerId, nonce, autoAttest: true };
    await register.call('POST', '/api/registers/finalize', { token: 'system', body });
    const refused = await remove(registerId, 'system');
    expect([refused.status, refused.body.code]).toEqual([403, 'SYSTEM_REGISTER_PROTECTED']);
  });

  it('purges a deleted register after a week, and keeps its id reserved', async () => {
    const id = await register.createRegister('Short-lived');
    const { registerNo } = await register.state(id);
    for (const count of [3, 30]) {
      const sealed = Array.from({ length: count }, (_, n) =>
        transaction({ registerId: id, payload: { count, n } }),
      );
      await register.ledger.writeDocket(buildDocket(await register.state(id), sealed, register.members));
    }
    const { database } = register;
    await waitFor(async () => (await projectedHeight(database.read, registerNo)) === 3);
    await storeInOldForm(database.pool, registerNo, 1);
    expect((await remove(id)).status).toBe(204);
    const { signal } = new AbortController();
    const counts = async () => {
      const tables = [
        'dockets',
        'docket_values',
        'transaction_ids',
        'log_nodes',
        'policy_versions',
        'transaction_rows',
      ];
      const found: number[] = [];
      for (const table of tables) {
        const { rows } = await database.pool.query(
          `select count(*)::int as n from ${table} where register_no = $1`,
          [registerNo],
        );
        found.push(rows[0].n);
      }
      return found;
    };
    await runHousekeeping({ database, clock }, signal);
    expect((await counts()).every((n) => n > 0)).toBe(true);
    clock.advance(8 * 24 * 3_600_000);
    await runHousekeeping({ database, clock }, signal);
    expect(await counts()).toEqual([0, 0, 0, 0, 0, 0]);
    const { verifier } = register;
    const { writeDocket, segments } = register.ledger;
    const ledger = ledgerHandlers({ database, clock, writeDocket, segments, verifier });
    const asked = create(GetRegisterStateRequestSchema, { registerId: id });
    const state = await ledger.getRegisterState(asked, contextOf('validator-0'));
    expect(state).toMatchObject({ found: true, status: 'Deleted' });
    const list = await ledger.listMemberRegisters(
      create(ListMemberRegistersRequestSchema),
      contextOf('validator-0'),
    );
    expect(list.registerIds).not.toContain(id);
    const again = { title: 'Again', registerId: id };
    const taken = await register.call('POST', '/api/registers/initiate', { token: 'system', body: again });
    expect([taken.status, taken.body.code]).toEqual([409, 'REGISTER_EXISTS']);
    await runHousekeeping({ database, clock }, signal);
  });
});
