import { randomUUID } from 'node:crypto';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WalletFact } from '#core/events/wallet-events.ts';
import { outboxStart, parseCursor } from '#kit/db/outbox.ts';
import { consumePage } from '#kit/events/consumer.ts';
import { findPosition } from '#kit/events/store.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { auditKeyUse } from '../../audit/key-uses.ts';
import { auditWalletChange } from '../../audit/wallet-changes.ts';
import { findAccount } from '../../sign-in/find-account.ts';
import {
  adminEmail,
  adminPassword,
  bearer,
  formOf,
  grant,
  startTestTenant,
  type TestTenant,
} from '../../tenant.fixture.ts';
import { listMemberships } from '../memberships/store.ts';
import { type EventPage, type EventSource, walletConsumption } from './consumer.ts';
import { factOf, openWalletLog, type WalletLog } from './wallets.fixture.ts';

describe('wallets in tokens', () => {
  let tenant: TestTenant;
  let log: WalletLog;
  let admin: string;
  let applied: number[];
  let wallets: object[];

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_wallets');
    const account = await findAccount(tenant.db.read, { email: adminEmail });
    if (account === undefined) throw new Error('no administrator');
    admin = account.id;
  });
  afterAll(() => tenant.stop());

  beforeEach(async () => {
    log = await openWalletLog();
    applied = [];
    wallets = [];
    await tenant.db.transact(async (tx) => {
      await tx.deleteFrom('event_cursors').execute();
      await tx.deleteFrom('user_wallets').execute();
    });
    return () => log.close();
  });

  const never = new AbortController().signal;
  const consume = (source: EventSource = log) =>
    consumePage(
      walletConsumption({
        db: tenant.db,
        source,
        auditUse: auditKeyUse,
        auditChange: auditWalletChange,
        onOrganizationWallet: async (_tx, wallet) => void wallets.push(wallet),
        onApplied: (count) => applied.push(count),
      }),
      never,
    );
  const findCursor = async () => parseCursor(await findPosition(tenant.db.read, 'wallet'));
  const appliedCount = () => applied.reduce((sum, count) => sum + count, 0);
  /** Transactions in other databases of the server delay events too, so a test waits for those it expects. */
  const consumed = (count: number) =>
    waitFor(async () => {
      await consume();
      return appliedCount() >= count;
    });
  const apply = async (kind: 'WalletCreated' | 'WalletStatusChanged', ...facts: readonly WalletFact[]) => {
    const target = appliedCount() + facts.length;
    await log.tell(kind, ...facts);
    await consumed(target);
  };
  /** The wallet in the next token of the administrator. */
  const claim = async () => decodeJwt((await grant(tenant)).access_token)['wallet_address'];
  const changed = (fact: WalletFact, status: string) => ({ ...fact, status });

  it('a sign-in and a refresh carry the oldest wallet, independent of the order of events', async () => {
    expect(await claim()).toBeUndefined();
    const before = await grant(tenant);
    const [young, old] = [factOf(admin, 9), factOf(admin, 2)];
    await apply('WalletCreated', young, old);
    expect(await claim()).toBe(old.address);
    const form = formOf({ grant_type: 'refresh_token', refresh_token: before.refresh_token });
    const renewed = (await tenant.app.inject({ ...form, url: '/api/service-auth/token' })).json();
    expect(decodeJwt(renewed.access_token)['wallet_address']).toBe(old.address);
    const me = await tenant.app.inject({ url: '/api/auth/me', headers: bearer(renewed.access_token) });
    expect(me.json()).toMatchObject({ walletAddress: old.address });
  });

  it('of wallets with the same time the one with the lower id is the oldest, as in the wallet service', async () => {
    const ids = ['00000000-0000-4000-8000-00000000000f', '00000000-0000-4000-8000-000000000001'];
    await apply('WalletCreated', ...ids.map((walletId) => factOf(admin, 2, { walletId, address: walletId })));
    expect(await claim()).toBe(ids[1]);
  });

  it('tokens of the consumer tier never carry it', async () => {
    await apply('WalletCreated', factOf(admin, 2));
    const payload = { email: adminEmail, password: adminPassword, tier: 'consumer' };
    const login = await tenant.app.inject({ method: 'POST', url: '/api/auth/login', payload });
    expect(login.statusCode).toBe(200);
    expect(decodeJwt(login.json().access_token)).toMatchObject({ tier: 'consumer' });
    expect(decodeJwt(login.json().access_token)).not.toHaveProperty('wallet_address');
  });

  it('the next oldest replaces a locked or deleted wallet until it is unlocked', async () => {
    const [first, second, third] = [factOf(admin, 1), factOf(admin, 2), factOf(admin, 3)];
    await apply('WalletCreated', first, second, third);
    await apply('WalletStatusChanged', changed(first, 'Locked'));
    expect(await claim()).toBe(second.address);
    await apply('WalletStatusChanged', changed(second, 'Deleted'));
    expect(await claim()).toBe(third.address);
    await apply('WalletStatusChanged', changed(first, 'Active'));
    expect(await claim()).toBe(first.address);
    await apply('WalletStatusChanged', changed(first, 'Deleted'), changed(third, 'Sleeping'));
    expect(await claim()).toBeUndefined();
  });

  it('wallets of organisations, of services and of other people do not count', async () => {
    const [account] = await listMemberships(tenant.db.read, admin);
    const organizationId = account?.organizationId ?? '';
    const ofOrganization = factOf(organizationId, 1, { ownerKind: 'Organization' });
    await log.tell('WalletCreated', ofOrganization, factOf(admin, 1, { ownerKind: 'Service' }));
    await apply('WalletCreated', factOf(randomUUID(), 2));
    expect(await claim()).toBeUndefined();
    expect(applied.at(-1)).toBe(1);
    expect(wallets).toEqual([{ organizationId, walletAddress: ofOrganization.address }]);
  });

  it('the event of a late commit is not skipped', async () => {
    const late = factOf(admin, 1);
    const open = await log.appendUncommitted('WalletCreated', late);
    const early = factOf(admin, 2);
    await log.tell('WalletCreated', early);
    await consume();
    expect(await claim()).toBeUndefined();
    await open.commit();
    await consumed(2);
    expect(await claim()).toBe(late.address);
  });

  it('uses of keys are in the audit log of the organisation, once; those without one in none', async () => {
    const [account] = await listMemberships(tenant.db.read, admin);
    const use = {
      walletId: randomUUID(),
      address: 'w1read',
      organizationId: account?.organizationId ?? null,
      platformUserId: admin,
      service: 'service-blueprint',
      requested: 32,
      unwrapped: 31,
      occurredAt: new Date(tenant.clock.nowMs()).toISOString(),
    };
    await log.append('WalletKeysUnwrapped', use);
    await log.append('WalletKeysUnwrapped', { ...use, organizationId: null });
    await log.append('WalletKeysUnwrapped', { ...use, organizationId: randomUUID() });
    await consumed(3);
    await consume();
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select(['organization_id', 'platform_user_id', 'success', 'details'])
      .where('event_type', '=', 'WalletKeysUnwrapped')
      .execute();
    expect(rows).toEqual([
      {
        organization_id: use.organizationId,
        platform_user_id: admin,
        success: false,
        details: {
          resourceType: 'wallet',
          resourceId: 'w1read',
          service: 'service-blueprint',
          requested: 32,
          unwrapped: 31,
        },
      },
    ]);
  });

  it('changes of wallets of an organisation are in its audit log, once', async () => {
    const [account] = await listMemberships(tenant.db.read, admin);
    const change = {
      walletId: randomUUID(),
      address: 'w1derived',
      organizationId: account?.organizationId,
      platformUserId: admin,
      act: 'KeyRevoked',
      occurredAt: new Date(tenant.clock.nowMs()).toISOString(),
    };
    await log.append('OrganizationWalletChanged', change);
    await log.append('OrganizationWalletChanged', { ...change, organizationId: randomUUID() });
    await consumed(2);
    await consume();
    const rows = await tenant.db.read
      .selectFrom('audit_events')
      .select(['organization_id', 'platform_user_id', 'success', 'details'])
      .where('event_type', '=', 'WalletChanged')
      .execute();
    const details = { resourceType: 'wallet', resourceId: 'w1derived', action: 'KeyRevoked' };
    expect(rows).toEqual([
      { organization_id: change.organizationId, platform_user_id: admin, success: true, details },
    ]);
  });

  it('a replay of the whole log has no effect', async () => {
    const [first, second] = [factOf(admin, 1), factOf(admin, 2)];
    await apply('WalletCreated', first, second);
    await apply('WalletStatusChanged', changed(first, 'Locked'));
    const rows = () => tenant.db.read.selectFrom('user_wallets').selectAll().orderBy('wallet_id').execute();
    const before = await rows();
    await tenant.db.transact((tx) => tx.deleteFrom('event_cursors').execute());
    await consume();
    expect(appliedCount()).toBe(6);
    expect(await rows()).toEqual(before);
    expect(await claim()).toBe(second.address);
  });

  it('a page that two replicas read concurrently is applied once', async () => {
    await log.tell('WalletCreated', factOf(admin, 1), factOf(admin, 2));
    const page = await waitFor(async () => {
      const read = await log.read({ transactionId: 0n, sequence: 0n }, never);
      return read.events.length === 2 && read;
    });
    const both = Promise.withResolvers<EventPage>();
    let holders = 0;
    const source: EventSource = {
      read: () => {
        holders += 1;
        if (holders === 2) both.resolve(page);
        return both.promise;
      },
    };
    await Promise.all([consume(source), consume(source)]);
    expect(applied.toSorted()).toEqual([0, 2]);
  });

  it('a creation event after a later change in the log does not undo the change', async () => {
    const fact = factOf(admin, 1);
    await apply('WalletStatusChanged', changed(fact, 'Locked'));
    await apply('WalletCreated', fact);
    expect(await claim()).toBeUndefined();
  });

  it('reads a log that is longer than a page', async () => {
    log.limit = 2;
    const facts = [5, 4, 3, 2, 1].map((day) => factOf(admin, day));
    await log.tell('WalletCreated', ...facts);
    await consumed(5);
    expect(Math.max(...applied)).toBe(2);
    expect(await claim()).toBe(facts[4]?.address);
  });

  it('skips unknown kinds and stops at an event that it cannot read', async () => {
    await log.append('TransactionReceived', 7);
    const fact = factOf(admin, 1);
    await apply('WalletCreated', fact);
    const position = await findCursor();
    await log.append('WalletCreated', { walletId: 'none' });
    await log.tell('WalletCreated', factOf(admin, 2));
    const refused = await waitFor(() =>
      consume().then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    expect(refused).toMatchObject({ code: 'EVENT_UNREADABLE' });
    expect(await findCursor()).toEqual(position);
    expect(await claim()).toBe(fact.address);
  });

  it('the cursor advances only together with the effect', async () => {
    await apply('WalletCreated', factOf(admin, 1));
    const position = await findCursor();
    await log.tell('WalletCreated', factOf(admin, 2), factOf(admin, 3));
    const read = await waitFor(async () => {
      const page = await log.read(position ?? outboxStart, never);
      return page.events.length === 2 && page;
    });
    // PostgreSQL refuses the second event, after the first one was written.
    const broken = read.events.map((event, index) => ({
      ...event,
      data: factOf(admin, 2 + index, index === 1 ? { ownerId: 'a\0b' } : {}),
    }));
    await expect(consume({ read: async () => ({ events: broken, complete: true }) })).rejects.toThrow();
    expect(await findCursor()).toEqual(position);
    const rows = await tenant.db.read.selectFrom('user_wallets').select('wallet_id').execute();
    expect(rows).toHaveLength(1);
  });
});
