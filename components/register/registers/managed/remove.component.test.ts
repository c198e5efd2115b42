import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { runHousekeeping } from '../../system/housekeeping/jobs.ts';
import { hourMs, type Managed, personKey, startManaged } from './managed.fixture.ts';

describe('deletion of registers of custom resources', () => {
  let managed: Managed;
  beforeAll(async () => {
    managed = await startManaged('remove');
  });
  afterAll(() => managed.register.stop());

  describe('that exist already', () => {
    it('are adopted by one resource at a time, and handed over', async () => {
      await managed.announce();
      const registerId = await managed.register.createRegister('Old');
      const [first, second] = [randomUUID(), randomUUID()];
      const adopted = await managed.put(first, { registerId });
      expect(adopted.body).toMatchObject({
        uid: first,
        registerId,
        phase: 'Online',
        title: 'Old',
        operatorRole: null,
      });
      const other = await managed.put(second, { registerId });
      expect([other.status, other.body.code, other.body.uid]).toEqual([409, 'REGISTER_BOUND', first]);
      const both = await Promise.all([
        managed.put(second, { registerId, replaces: first }),
        managed.put(randomUUID(), { registerId, replaces: first }),
      ]);
      expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409]);
      expect((await managed.put(first, { registerId })).body.code).toBe('REGISTER_DELETED');
    });

    it('are not adopted from another organisation, nor when they do not exist', async () => {
      await managed.announce();
      const registerId = await managed.register.createRegister('Theirs');
      const foreign = await managed.put(randomUUID(), { registerId, organizationId: randomUUID() });
      expect([foreign.status, foreign.body.code]).toEqual([409, 'REGISTER_OF_ANOTHER_ORGANIZATION']);
      const none = await managed.put(randomUUID(), { registerId: 'ff'.repeat(16) });
      expect([none.status, none.body.code]).toEqual([404, 'REGISTER_NOT_FOUND']);
      const { uid } = await managed.online();
      const second = await managed.put(uid, { registerId });
      expect([second.status, second.body.code]).toEqual([409, 'UID_BOUND']);
    });
  });

  describe('are deleted', () => {
    it('with Retain not at all: the resource releases them for another one to adopt', async () => {
      const { uid, registerId } = await managed.online();
      expect((await managed.remove(uid, 'Retain')).body).toEqual({ registerId, deletion: null });
      expect((await managed.remove(uid, 'Retain')).status).toBe(200);
      expect((await managed.put(uid)).body.code).toBe('REGISTER_DELETED');
      expect((await managed.get(registerId)).body).toMatchObject({ uid: null, phase: 'Online' });
      expect((await managed.put(randomUUID(), { registerId })).body).toMatchObject({
        registerId,
        phase: 'Online',
      });
    });

    it('with Tombstone, and may be purged after all', async () => {
      const { uid, registerId } = await managed.online();
      const gone = await managed.remove(uid, 'Tombstone');
      expect(gone.body).toMatchObject({ registerId, deletion: { policy: 'Tombstone', purgeAfter: null } });
      expect((await managed.remove(uid, 'Tombstone')).body).toEqual(gone.body);
      expect((await managed.get(uid)).body).toMatchObject({ phase: 'Deleted', validators: { size: 0 } });
      expect((await managed.put(uid)).body.code).toBe('REGISTER_DELETED');
      expect((await managed.change(uid, { change: 'devModeOff' })).body.code).toBe('REGISTER_DELETED');
      await waitFor(() => managed.register.validators.stopped.includes(`validator-3 ${registerId}`));
      expect(
        (await managed.register.call('GET', `/api/registers/${registerId}`, { token: 'admin' })).status,
      ).toBe(404);
      expect((await managed.remove(uid, 'Purge')).body.deletion).toMatchObject({
        policy: 'Purge',
        purgedAt: null,
      });
    });

    it('with Purge, with the data deleted a day later by a job that can be interrupted', async () => {
      const { uid, registerId } = await managed.online();
      const { deletion } = (await managed.remove(uid, 'Purge')).body;
      expect(deletion.purgeAfter).toBe(new Date(managed.clock.nowMs() + 24 * hourMs).toISOString());
      managed.clock.advance(hourMs);
      expect((await managed.remove(uid, 'Purge')).body.deletion).toEqual(deletion);
      const { clock } = managed;
      const { signal } = new AbortController();
      const house = () => runHousekeeping({ database: managed.register.database, clock }, signal);
      await house();
      expect((await managed.get(uid)).body).toMatchObject({
        phase: 'Deleting',
        deletion: { purgedAt: null },
      });
      managed.clock.advance(23 * hourMs);
      await Promise.all([house(), house()]);
      await house();
      const { body } = await managed.get(registerId);
      expect(body).toMatchObject({ phase: 'Deleted', genesisHash: null, deletion: { policy: 'Purge' } });
      expect(body.deletion.purgedAt).not.toBeNull();
      const rows = await managed.register.database.pool.query(
        'select count(*) from dockets d join registers r using (register_no) where r.register_id = $1',
        [registerId],
      );
      expect(Number(rows.rows[0].count)).toBe(0);
    });

    it('never when they are system registers', async () => {
      const { uid } = await managed.online({ purpose: 'System', organizationId: undefined });
      expect((await managed.get(uid)).body).toMatchObject({
        purpose: 'System',
        organizationId: SYSTEM_ORGANIZATION_ID,
      });
      for (const policy of ['Tombstone', 'Purge']) {
        const refused = await managed.remove(uid, policy);
        expect([refused.status, refused.body.code]).toEqual([403, 'SYSTEM_REGISTER_PROTECTED']);
      }
    });

    it('before they began: the draft is deleted and the UID creates no other one', async () => {
      const uid = randomUUID();
      await managed.put(uid, { owners: [{ walletAddress: personKey.walletAddress }] });
      expect((await managed.remove(uid, 'Tombstone')).body.deletion).toBeNull();
      expect((await managed.put(uid)).body.code).toBe('REGISTER_DELETED');
      expect((await managed.remove(randomUUID(), 'Purge')).body).toEqual({
        registerId: null,
        deletion: null,
      });
    });
  });
});
