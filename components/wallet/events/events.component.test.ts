import { randomBytes, randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseWalletEvent, parseWalletKeyRevoked } from '#core/events/wallet-events.ts';
import { openDatabase } from '#kit/db/db.ts';
import { type OutboxCursor, outboxStart } from '#kit/db/outbox.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  ReadEventsRequestSchema,
  type ReadEventsResponse,
  ReadEventsResponseSchema,
} from '#protos/gen/chancery/wallet/v1/wallet_pb.js';
import { migrations } from '../database/migrations/list.ts';
import type { WalletDatabase } from '../database/schema.ts';
import {
  administrator,
  openFixture,
  openReplica,
  person,
  type Replica,
  type ReplicaOptions,
  rpcContext,
} from '../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../testing/http-client.ts';
import { findWallet } from '../wallets/records/store.ts';
import { appendWalletEvent } from '../wallets/records/wallet-event.ts';
import { eventHandlers } from './rpc.ts';

const ORGANIZATION = randomUUID();

async function readFrom(
  replica: Pick<Replica, 'db'>,
  after?: OutboxCursor,
  limit = 0,
  reader = 'service-tenant',
) {
  const request = create(ReadEventsRequestSchema, { limit, ...(after !== undefined && { after }) });
  const answer = await eventHandlers(replica.db.read).readEvents(request, rpcContext(reader));
  return create(ReadEventsResponseSchema, answer);
}

const factsOf = (page: ReadEventsResponse) =>
  page.events.map(({ kind, data }) => parseWalletEvent(kind, JSON.parse(data)));

describe('the event log of the wallet service', () => {
  const alice = person();
  let replica: Replica & ReplicaOptions;
  let client: HttpClient;
  let seen: OutboxCursor = outboxStart;

  beforeAll(async () => {
    replica = await openFixture('wallet_events');
    client = createHttpClient(replica);
    client.callers.set('alice', alice).set('admin', administrator(ORGANIZATION));
  });

  afterAll(async () => {
    await client.close();
    await replica.close();
  });

  /**
   * The next events. Transactions in other databases of the server delay events too, so a test waits for those it
   * expects.
   */
  async function next(count: number) {
    const page = await waitFor(async () => {
      const read = await readFrom(replica, seen);
      return read.events.length >= count ? read : undefined;
    });
    seen = page.events.at(-1)?.cursor ?? seen;
    return factsOf(page);
  }

  test('creating and recovering a wallet appends one event with its state and notifies consumers', async () => {
    const notifications = replica.notifications();
    const headers = { 'idempotency-key': 'once' };
    const body = { title: 'First', keyType: 'ED25519' };
    const { body: first } = await client.call('alice', 'POST /api/wallets', { body, headers });
    await client.call('alice', 'POST /api/wallets', { body, headers });
    const phrase = { keyType: 'NISTP256', mnemonic: `${'abandon '.repeat(11)}about` };
    const { body: recovered } = await client.call('alice', 'POST /api/wallets/recover', { body: phrase });
    await client.call('alice', 'POST /api/wallets/recover', { body: phrase });
    const ofOrganization = await client.made('admin', 'ED25519', { organizationId: ORGANIZATION });
    const read = await next(3);
    const of = (wallet: { id: string; walletAddress: string; createdAt: string }, owner: object) => ({
      kind: 'WalletCreated',
      fact: {
        walletId: wallet.id,
        address: wallet.walletAddress,
        status: 'Active',
        createdAt: wallet.createdAt,
        ...owner,
      },
    });
    const hers = { ownerKind: 'User', ownerId: alice.platformUserId };
    const theirs = { ownerKind: 'Organization', ownerId: ORGANIZATION };
    expect(read).toEqual([of(first, hers), of(recovered, hers), of(ofOrganization, theirs)]);
    expect(replica.notifications() - notifications).toBe(3);
  });

  test('a refused request appends no event and notifies no consumer', async () => {
    const notifications = replica.notifications();
    const second = { title: 'x', keyType: 'ED25519', organizationId: ORGANIZATION };
    expect((await client.call('admin', 'POST /api/wallets', { body: second })).status).toBe(409);
    expect((await client.call('alice', 'POST /api/wallets', { body: {} })).status).toBe(400);
    const wallet = await client.made('alice');
    expect((await next(1)).map((event) => event?.fact.walletId)).toEqual([wallet.id]);
    expect(replica.notifications() - notifications).toBe(1);
  });

  test('a consumer that reads meanwhile does not skip the event of a late commit', async () => {
    const slow = await findOwn();
    const written = Promise.withResolvers<void>();
    const mayCommit = Promise.withResolvers<void>();
    const late = replica.db.transact(async (tx) => {
      await tx.updateTable('wallets').set({ status: 'Locked' }).where('id', '=', slow.id).execute();
      await appendWalletEvent(tx, 'WalletStatusChanged', { ...slow, status: 'Locked' });
      written.resolve();
      await mayCommit.promise;
    });
    await written.promise;
    const early = await client.made('alice');
    expect((await readFrom(replica, seen)).events).toEqual([]);
    mayCommit.resolve();
    await late;
    const read = await next(2);
    expect(read.map((event) => [event?.kind, event?.fact.walletId, event?.fact.status])).toEqual([
      ['WalletStatusChanged', slow.id, 'Locked'],
      ['WalletCreated', early.id, 'Active'],
    ]);
  });

  async function findOwn() {
    const made = await client.made('alice');
    await next(1);
    const wallet = await findWallet(replica.db.read, made.id);
    if (wallet === undefined) throw new Error('no wallet');
    return wallet;
  }

  test('a change that is rolled back appends no event', async () => {
    const wallet = await findOwn();
    const failed = replica.db.transact(async (tx) => {
      await appendWalletEvent(tx, 'WalletStatusChanged', { ...wallet, status: 'Deleted' });
      throw new Error('changed my mind');
    });
    await expect(failed).rejects.toThrow('changed my mind');
    const after = await client.made('alice');
    expect((await next(1)).map((event) => event?.fact.walletId)).toEqual([after.id]);
  });

  test('pages follow each other without gap or repetition, and the last page is marked', async () => {
    const log = await readFrom(replica);
    expect(log.complete).toBe(true);
    const keys: string[] = [];
    let cursor: OutboxCursor | undefined;
    for (let complete = false; !complete; ) {
      const page = await readFrom(replica, cursor, 2);
      expect(page.events.length).toBeLessThanOrEqual(2);
      keys.push(...page.events.map((event) => event.key));
      cursor = page.events.at(-1)?.cursor ?? cursor;
      complete = page.complete;
    }
    expect(keys).toEqual(log.events.map((event) => event.key));
    expect((await readFrom(replica, undefined, 1_000_000)).events).toHaveLength(log.events.length);
  });

  test('system wallets have no events', async () => {
    const wallet = await findOwn();
    const system = { ...wallet, kind: 'System' as const, ownerUserId: undefined };
    await replica.db.transact((tx) => appendWalletEvent(tx, 'WalletCreated', system));
    const after = await client.made('alice');
    expect((await next(1)).map((event) => event?.fact.walletId)).toEqual([after.id]);
  });

  test('the register service learns of revoked identity keys, and of nothing else', async () => {
    const organizationId = randomUUID();
    client.callers.set('owner', administrator(organizationId));
    const userId = randomUUID();
    replica.members.add(`${organizationId} ${userId}`);
    const base = `/api/wallets/org/${organizationId}`;
    await client.call('owner', `POST ${base}/master-key`);
    const derive = async (change: object) => {
      const body = { userId, usage: 'Identity', ...change };
      return (await client.call('owner', `POST ${base}/derive-key`, { body })).body;
    };
    const [first, other, second] = [
      await derive({}),
      await derive({ usage: 'Communications' }),
      await derive({ departmentId: 1 }),
    ];
    for (const { derivedKeyId } of [first, other, second]) {
      expect((await client.call('owner', `DELETE ${base}/keys/${derivedKeyId}`)).status).toBe(200);
    }
    const read = async (after?: OutboxCursor, limit = 0) =>
      readFrom(replica, after, limit, 'service-register');
    await waitFor(async () => (await read()).events.length >= 2);
    const { events, complete } = await read();
    expect(complete).toBe(true);
    const revoked = events.map(({ kind, data }) => parseWalletKeyRevoked(kind, JSON.parse(data)));
    expect(revoked.map((each) => each?.walletAddress)).toEqual([first.walletAddress, second.walletAddress]);
    const page = await read(undefined, 1);
    expect([page.events.length, page.complete]).toEqual([1, false]);
    expect((await read(events[0]?.cursor)).events).toEqual([events[1]]);
  });
});

test('the migration appends events for existing wallets, oldest first', async () => {
  const { log, telemetry } = testRuntime('service-wallet');
  const url = await testDatabase('wallet_older');
  const older = migrations.filter((one) => one.name < '0003');
  expect(older).toHaveLength(2);
  const before = await openDatabase<WalletDatabase>({
    url,
    schema: 'wallet',
    log,
    telemetry,
    migrations: older,
  });
  const owner = randomUUID();
  const row = {
    title: 'x',
    key_type: 'ED25519',
    slot: 0,
    public_key: Buffer.alloc(32),
    status: 'Active',
    created_by: owner,
  } as const;
  const wallets = ['2026-11-02T00:00:00.120Z', '2026-11-01T00:00:00.000Z', '2026-11-03T00:00:00.000Z'].map(
    (at, index) => ({
      ...row,
      id: randomUUID(),
      address: `w1${index}`,
      kind: index === 2 ? ('System' as const) : ('User' as const),
      owner_user_id: index === 2 ? null : owner,
      system_identity: index === 2 ? 'register-control' : null,
      created_at: new Date(at),
    }),
  );
  await before.transact((tx) => tx.insertInto('wallets').values(wallets).execute());
  await before.close();
  const replica = await openReplica({ url, kek: randomBytes(32) });
  const page = await waitFor(async () => {
    const read = await readFrom(replica);
    return read.events.length > 0 && read;
  });
  const of = (index: number, createdAt: string) => ({
    kind: 'WalletCreated',
    fact: {
      walletId: wallets[index]?.id,
      address: `w1${index}`,
      ownerKind: 'User',
      ownerId: owner,
      status: 'Active',
      createdAt,
    },
  });
  expect(factsOf(page)).toEqual([of(1, '2026-11-01T00:00:00.000Z'), of(0, '2026-11-02T00:00:00.120Z')]);
  await replica.close();
});
