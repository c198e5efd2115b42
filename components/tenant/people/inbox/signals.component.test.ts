import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { latestCursor, type OutboxCursor, outboxStart, pruneEvents, readEvents } from '#kit/db/outbox.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { groupOf, inboxSignals } from './signals.ts';
import { insertEntry, markAllRead, stampEntry } from './store.ts';

describe('the event log of inboxes', () => {
  let tenant: TestTenant;
  let from: OutboxCursor = outboxStart;
  const isHeld = () => true;

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_signals');
  });
  afterAll(() => tenant.stop());

  const add = (platformUserId: string, sourceEventId = randomUUID()) =>
    tenant.db.transact((tx) =>
      insertEntry(tx, {
        platformUserId,
        category: 'System',
        severity: 'Info',
        correlationKey: 'x',
        title: 'A title that no signal may have',
        sourceEventId,
        occurredAtMs: 0,
        writerServiceId: 'service-tenant',
      }),
    );
  const stamp = (platformUserId: string, id: string, column: 'read_at' | 'dismissed_at') =>
    tenant.db.transact((tx) => stampEntry(tx, { platformUserId, id, atMs: 1 }, column));
  /** Rows since the last call. Other databases of the server hold events back, hence the wait. */
  const rows = async (count: number) => {
    const found = await waitFor(async () => {
      const events = await readEvents(tenant.db.read, from, 100);
      return events.length >= count ? events : undefined;
    });
    from = await latestCursor(tenant.db.read);
    return found;
  };

  it('has an event for each new entry, and none for a repeated one', async () => {
    const person = randomUUID();
    const sourceEventId = randomUUID();
    const { entry } = await add(person, sourceEventId);
    await add(person, sourceEventId);
    const found = await rows(1);
    expect(found.map(({ kind, key, data }) => ({ kind, key, data }))).toEqual([
      { kind: 'InboxEntryAdded', key: person, data: { platformUserId: person, entryId: entry.id } },
    ]);
  });

  it('has an event when the unread count changes, and only then', async () => {
    const person = randomUUID();
    const [one, two, three] = [await add(person), await add(person), await add(person)];
    expect(await stamp(person, one.entry.id, 'read_at')).toEqual({ wasUnread: true });
    expect(await stamp(person, one.entry.id, 'read_at')).toEqual({ wasUnread: false });
    expect(await stamp(person, one.entry.id, 'dismissed_at')).toEqual({ wasUnread: false });
    expect(await stamp(person, two.entry.id, 'dismissed_at')).toEqual({ wasUnread: true });
    expect(await stamp(randomUUID(), three.entry.id, 'read_at')).toBeUndefined();
    const markAll = () => tenant.db.transact((tx) => markAllRead(tx, person, 1));
    expect([await markAll(), await markAll()]).toEqual([1, 0]);
    const kinds = (await rows(6)).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === 'InboxEntryAdded')).toHaveLength(3);
    expect(kinds.filter((kind) => kind === 'InboxEntriesSeen')).toHaveLength(3);
  });

  it('has no event of a transaction that fails', async () => {
    const person = randomUUID();
    const failing = tenant.db.transact(async (tx) => {
      await insertEntry(tx, {
        platformUserId: person,
        category: 'System',
        severity: 'Info',
        correlationKey: 'x',
        title: 'x',
        sourceEventId: randomUUID(),
        occurredAtMs: 0,
        writerServiceId: 'service-tenant',
      });
      throw new Error('afterwards');
    });
    await expect(failing).rejects.toThrow('afterwards');
    await add(randomUUID());
    expect((await rows(1)).map(({ key }) => key)).not.toContain(person);
  });

  it('becomes signals with ids, a time and a trace alone, and one present count for each person', async () => {
    const [anna, ben] = [randomUUID(), randomUUID()];
    const [first, second, third] = [await add(anna), await add(ben), await add(anna)];
    await stamp(anna, first.entry.id, 'read_at');
    const found = await rows(4);
    const signals = await inboxSignals(tenant.db.read, found, isHeld);
    const at = (n: number) => found[n]?.createdAt.toISOString();
    expect(signals).toEqual([
      { target: 'InboxEntryAdded', arguments: [first.entry.id, at(0), ''], groups: [groupOf(anna)] },
      { target: 'InboxEntryAdded', arguments: [second.entry.id, at(1), ''], groups: [groupOf(ben)] },
      { target: 'InboxUnreadCountUpdated', arguments: [1, at(1), ''], groups: [groupOf(ben)] },
      { target: 'InboxEntryAdded', arguments: [third.entry.id, at(2), ''], groups: [groupOf(anna)] },
      { target: 'InboxUnreadCountUpdated', arguments: [1, at(3), ''], groups: [groupOf(anna)] },
    ]);
    for (const { arguments: given } of signals) {
      for (const argument of given) expect(['string', 'number']).toContain(typeof argument);
    }
    expect(JSON.stringify(signals)).not.toContain('no signal may have');
    const ofBen = await inboxSignals(tenant.db.read, found, (group) => group === groupOf(ben));
    expect(ofBen).toEqual(signals.filter(({ groups }) => groups[0] === groupOf(ben)));
    expect(await inboxSignals(tenant.db.read, found, () => false)).toEqual([]);
  });

  it('counts right when entries are added at the same time', async () => {
    const person = randomUUID();
    await Promise.all(Array.from({ length: 10 }, () => add(person)));
    const signals = await inboxSignals(tenant.db.read, await rows(10), isHeld);
    expect(signals.at(-1)).toMatchObject({
      target: 'InboxUnreadCountUpdated',
      arguments: [10, expect.any(String), ''],
    });
  });

  it('loses old events to age', async () => {
    await add(randomUUID());
    expect(await tenant.db.transact((tx) => pruneEvents(tx, 2))).toBe(0);
    await tenant.db.pool.query("UPDATE outbox SET created_at = now() - interval '3 days'");
    expect(await tenant.db.transact((tx) => pruneEvents(tx, 2))).toBeGreaterThan(0);
    expect(await latestCursor(tenant.db.read)).toEqual(outboxStart);
  });
});
