import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { WALLET_HUB_EVENTS, type WalletHubEvent } from '#core/events/hub-events.ts';
import type { Caller } from '#core/identity/claims.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import { createHttpServer, listenHttp } from '#kit/http/http.ts';
import { connectClient, transports } from '#kit/hub/hub.fixture.ts';
import { type Hub, openHub } from '#kit/hub/hub.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { mountRoutes } from '../../http.ts';
import {
  administrator,
  openFixture,
  openReplica,
  person,
  type Replica,
  type ReplicaOptions,
} from '../../testing/fixture.ts';
import { createHttpClient, type HttpClient } from '../../testing/http-client.ts';
import { upkeepJobs } from '../../upkeep.ts';
import { announceCredential, announceCredentialStatus, announceRevokedDevice } from '../holder/announce.ts';
import { getWallet } from '../records/store.ts';
import { walletHub, walletHubPath } from './hub.ts';

const names = Object.keys(WALLET_HUB_EVENTS) as WalletHubEvent[];
const organizationId = randomUUID();
/** A minute of subscriptions, without a client being mistaken for a silent one. */
const judgeMs = 5_000;

interface Heard {
  readonly name: string;
  readonly args: readonly unknown[];
}

describe('the wallet hub', () => {
  const wakes = new Set<() => void>();
  const people = {
    citizen: person({ tier: 'consumer' }),
    anna: person({ organizationId, roles: ['User'] }),
    ben: person(),
  };
  let replica: Replica & ReplicaOptions;
  let client: HttpClient;
  let url: string;
  let wallets: Record<'citizen' | 'anna' | 'ben' | 'second', string>;
  let derived: string;

  beforeAll(async () => {
    replica = await openFixture('wallet_hub');
    client = createHttpClient(replica);
    for (const [name, caller] of Object.entries(people)) client.callers.set(name, caller);
    client.callers
      .set('admin', administrator(organizationId))
      .set('service', person({ kind: 'service', tier: 'service', platformUserId: undefined }))
      .set('nameless', person({ platformUserId: undefined }));
    const address = async (who: string) => (await client.made(who)).walletAddress as string;
    wallets = {
      citizen: await address('citizen'),
      anna: await address('anna'),
      ben: await address('ben'),
      second: await address('anna'),
    };
    replica.members.add(`${organizationId} ${people.anna.platformUserId}`);
    const base = `POST /api/wallets/org/${organizationId}`;
    await client.call('admin', `${base}/master-key`);
    const body = { userId: people.anna.platformUserId, usage: 'Identity' };
    derived = (await client.call('admin', `${base}/derive-key`, { body })).body.walletAddress;
    url = (await serve(replica)).url;
  });
  afterAll(async () => {
    for (const stop of stops.toReversed()) await stop();
    await client.close();
    await replica.close();
  });

  const stops: (() => Promise<void>)[] = [];

  /** Serves the routes of a replica with its hub. */
  async function serve(of: Replica): Promise<{ readonly url: string; readonly hub: Hub }> {
    const app = createHttpServer({ runtime: of.runtime, title: 'wallet' });
    authPlugin(app, {
      authenticate: async (token): Promise<Caller> => {
        const caller = client.callers.get(token);
        if (caller === undefined) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
        return caller;
      },
    });
    const hub = await openHub(walletHub(of.deps), {
      runtime: of.runtime,
      bus: {
        subscribe: (_subject, wake) => {
          wakes.add(wake);
          return () => wakes.delete(wake);
        },
      },
      authenticator: { assertCurrent: () => undefined },
      limits: { judgeMs },
    });
    mountRoutes(app, of.deps, () => hub);
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    stops.push(async () => {
      await hub.stop();
      await app.close();
    });
    return { url: `http://127.0.0.1:${port}${walletHubPath}`, hub };
  }

  async function follow(token: string, given: { at?: string; by?: (typeof transports)[number][1] } = {}) {
    const { at = url, by } = given;
    const connected = await connectClient(at, { token, ...(by !== undefined && { transport: by }) });
    const heard: Heard[] = [];
    for (const name of [...names, 'Replayed'] as const) {
      connected.connection.on(name, (...args: unknown[]) => heard.push({ name, args }));
    }
    return {
      ...connected,
      heard,
      ids: () => heard.filter(({ name }) => name !== 'Replayed').map(({ args }) => String(args[0])),
      invoke: (method: string, ...args: unknown[]) => connected.connection.invoke(method, ...args),
    };
  }

  const wake = () => {
    for (const each of wakes) each();
  };
  /** Announces a credential of a wallet; its id. */
  async function deliver(address: string): Promise<string> {
    const credentialId = `urn:uuid:${randomUUID()}`;
    const wallet = await getWallet(replica.db.read, address);
    await replica.db.transact((tx) => announceCredential(tx, { wallet, credentialId }));
    wake();
    return credentialId;
  }
  async function revokeDevice({ platformUserId = '' }: Caller): Promise<string> {
    const deviceId = randomUUID();
    await replica.db.transact((tx) => announceRevokedDevice(tx, { platformUserId, deviceId }));
    wake();
    return deviceId;
  }

  describe.each([
    ['a citizen', 'citizen'],
    ['a person of the platform', 'ben'],
  ] as const)('to %s', (_who, name) => {
    it.each(transports)('tells of credentials and devices, in their order, over %s', async (_name, by) => {
      const [own, other] = [await follow(name, { by }), await follow('anna', { by })];
      const credentialId = await deliver(wallets[name]);
      const wallet = await getWallet(replica.db.read, wallets[name]);
      await replica.db.transact((tx) => announceCredentialStatus(tx, { wallet, credentialId }));
      const deviceId = await revokeDevice(people[name]);
      const foreign = await deliver(wallets.anna);
      await waitFor(() => own.heard.length === 3);
      const facts = [expect.stringMatching(/Z$/), expect.stringMatching(/^(?:[0-9a-f]{32})?$/)];
      expect(own.heard).toEqual([
        { name: 'CredentialAvailable', args: [credentialId, ...facts] },
        { name: 'CredentialStatusChanged', args: [credentialId, ...facts] },
        { name: 'DeviceRevoked', args: [deviceId] },
      ]);
      for (const { name: event, args } of own.heard) {
        expect(WALLET_HUB_EVENTS[event as WalletHubEvent].parse(args)).toEqual(args);
        expect(args.filter((arg) => typeof arg === 'object')).toEqual([]);
      }
      await waitFor(() => other.ids().includes(foreign));
      expect(other.ids()).toEqual([foreign]);
      await own.connection.stop();
      await other.connection.stop();
    });
  });

  it('tells of a wallet to everyone who may use it, and to each connection once', async () => {
    const granted = { subject: people.ben.platformUserId, accessRight: 'ReadWrite' };
    const body = { ...granted, reason: 'r', allowedDerivationContexts: ['platform:register-attestation'] };
    const target = `POST /api/v1/wallets/${wallets.anna}/access`;
    expect((await client.call('anna', target, { body })).status).toBe(201);
    const [owner, delegate] = [await follow('anna'), await follow('ben')];
    for (const each of [owner, delegate]) {
      expect(await each.invoke('SubscribeToWallet', wallets.anna)).toEqual({ replayed: 0, complete: true });
    }
    await owner.invoke('SubscribeToWallet', derived);
    const ids = [await deliver(wallets.anna), await deliver(derived), await deliver(wallets.second)];
    await waitFor(() => owner.heard.length >= 3 && delegate.heard.length >= 1);
    expect(owner.ids()).toEqual(ids);
    expect(delegate.ids()).toEqual(ids.slice(0, 1));
    for (const each of [owner, delegate]) await each.invoke('UnsubscribeFromWallet', wallets.anna);
    const later = await deliver(wallets.anna);
    const own = await deliver(wallets.ben);
    await waitFor(() => owner.ids().includes(later) && delegate.ids().includes(own));
    expect(delegate.ids()).not.toContain(later);
  });

  it('refuses wallets of others, and what is no wallet', async () => {
    const stranger = await follow('citizen');
    const unknown = 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek';
    for (const address of [wallets.anna, derived, unknown]) {
      const subscribing = stranger.invoke('SubscribeToWallet', address);
      await expect(subscribing).rejects.toThrow('Unauthorized: The wallet is not yours.');
    }
    for (const args of [[], ['x'], [7], [wallets.citizen, 'yesterday'], [`platform-user:${randomUUID()}`]]) {
      await expect(stranger.invoke('SubscribeToWallet', ...args)).rejects.toThrow(/Invalid arguments/);
    }
    await expect(stranger.invoke('JoinGroup', 'presentation:1')).rejects.toThrow(/Method not found/);
    const foreign = await deliver(wallets.anna);
    const own = await deliver(wallets.citizen);
    await waitFor(() => stranger.ids().includes(own));
    expect(stranger.ids()).not.toContain(foreign);
  });

  it('refuses services and strangers', async () => {
    for (const token of ['service', 'nameless', 'unknown']) {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${url}/negotiate?negotiateVersion=1`, { method: 'POST', headers });
      expect([token, answer.status]).toEqual([token, 401]);
      await expect(connectClient(url, { token, skipNegotiation: true })).rejects.toThrow();
    }
    expect((await fetch(`${url}/negotiate`, { method: 'POST' })).status).toBe(401);
    await expect(connectClient(`${url}?since=yesterday`, { token: 'ben' })).rejects.toThrow();
  });

  it('closes the connection of a person who may not use a wallet any more', async () => {
    const admin = await follow('anna');
    await admin.invoke('SubscribeToWallet', derived);
    const witness = await follow('anna');
    const id = (await client.call('anna', `GET /api/wallets/${derived}`)).body.id;
    const lock = (status: string) => client.call('admin', `PATCH /api/wallets/${id}`, { body: { status } });
    expect((await lock('Locked')).status).toBe(200);
    replica.clock.advance(judgeMs + 1_000);
    await waitFor(() => admin.closed.count === 1);
    expect(String(admin.closed.error)).toContain('Unauthorized: The wallet is not yours.');
    expect(witness.closed.count).toBe(0);
    await lock('Active');
  });

  it('repeats what happened since, to the person and to followers of a wallet', async () => {
    const first = await follow('anna');
    const seen = await deliver(wallets.anna);
    await waitFor(() => first.ids().includes(seen));
    const since = String(first.heard.at(-1)?.args[1]);
    await first.connection.stop();
    const missed = [await deliver(wallets.anna), await revokeDevice(people.anna)];
    const ofSecond = await deliver(wallets.second);
    const ofDerived = await deliver(derived);
    const foreign = await deliver(wallets.ben);

    const again = await follow('anna', { at: `${url}?since=${encodeURIComponent(since)}` });
    const expected = [...missed, ofSecond];
    await waitFor(() => again.heard.some(({ name }) => name === 'Replayed'));
    // What a running transaction holds back comes after the replay, and what the client has seen may be repeated.
    await waitFor(() => expected.every((id) => again.ids().includes(id)));
    expect(again.heard.find(({ name }) => name === 'Replayed')?.args[1]).toBe(true);
    const heard = [...new Set(again.ids())];
    expect(heard.filter((id) => expected.includes(id))).toEqual(expected);
    expect(heard).not.toContain(foreign);
    expect(heard).not.toContain(ofDerived);

    const follower = await follow('anna');
    expect(await follower.invoke('SubscribeToWallet', wallets.anna, since)).toMatchObject({ complete: true });
    expect(await follower.invoke('SubscribeToWallet', derived, since)).toMatchObject({ complete: true });
    await waitFor(() => follower.ids().includes(ofDerived));
    expect(follower.ids()).toContain(missed[0]);
    for (const id of [missed[1], ofSecond, foreign]) expect(follower.ids()).not.toContain(id);
  });

  it('signals a change at one replica to the clients of another one', async () => {
    const second = await openReplica(replica);
    onTestFinished(() => second.close());
    const { url: at, hub } = await serve(second);
    onTestFinished(() => hub.stop());
    const there = await follow('citizen', { at });
    const id = await deliver(wallets.citizen);
    await waitFor(() => there.ids().includes(id));
  });

  it('keeps its events for two days, and those of wallets for good', async () => {
    const retention = upkeepJobs(replica.db).find(({ name }) => name === 'event-retention');
    const kept = async () => {
      const { rows } = await replica.db.pool.query('SELECT DISTINCT kind FROM outbox ORDER BY kind');
      return rows.map(({ kind }) => kind);
    };
    const before = await kept();
    const old = before.filter((kind) => !names.includes(kind));
    expect(before.length).toBe(old.length + names.length);
    expect(old).toContain('WalletCreated');
    const run = async () => await retention?.run(new AbortController().signal);
    await run();
    expect(await kept()).toEqual(before);
    await replica.db.pool.query("UPDATE outbox SET created_at = now() - interval '49 hours'");
    await run();
    expect(await kept()).toEqual(old);
  });
});
