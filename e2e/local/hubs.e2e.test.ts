import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { credentialAvailable } from '#core/events/holder-events.ts';
import { WALLET_HUB_EVENTS } from '#core/events/hub-events.ts';
import { type Api, createApi } from '../harness/api.ts';
import { startBalancer } from '../harness/balancer.ts';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { connectHub, type HubClient, type Received, TRANSPORTS, type Transport } from '../harness/hub.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitOnline,
} from '../harness/journey.ts';
import { createOperator } from '../harness/operator.ts';
import {
  GATEWAY_PORTS,
  type OwnProcess,
  SERVICE_PORTS,
  startLike,
  startOf,
  startOnFreePorts,
} from '../harness/running-process.ts';
import { environmentOf } from '../harness/service-caller.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';

const inboxTargets = ['InboxEntryAdded', 'InboxUnreadCountUpdated'];
const registerTargets = ['DocketSealed', 'RegisterHeightUpdated', 'TransactionConfirmed'];

describe.runIf(process.platform === 'linux')('hubs through the gateway', () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let root = '';
  let anna: Person;
  let userId = '';
  let write: (title: string) => Promise<string>;

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-hubs-'));
    system = await startSystem({ dataDir, args: ['--processes'], deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    root = (await signIn(api, system.state)).access_token;
    anna = await createPerson(api, root, await createOrganization(api, root, 'hubs'), {
      name: 'anna',
      role: 'User',
    });
    const me = await api.expect(200, 'GET', '/api/auth/me', { token: anna.token });
    userId = z.object({ platformUserId: z.string() }).parse(me.body).platformUserId;
    const { call } = createOperator(system.state);
    const as = { certificate: 'service-wallet', token: 'service-wallet' };
    write = async (title) => {
      const sourceEventId = randomUUID();
      const entry = {
        platformUserId: userId,
        category: 'System',
        correlationKey: 'hubs',
        title,
        sourceEventId,
      };
      const { status, body } = await call('tenant', 'POST /api/internal/inbox', entry, as);
      expect(status).toBe(201);
      return body.entry.id;
    };
  });
  afterAll(async () => {
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function connect(url: string, transport: Transport, targets = inboxTargets): Promise<HubClient> {
    const client = await connectHub(url, { token: anna.token, transport, targets });
    onTestFinished(() => client.stop());
    return client;
  }
  const hub = (name: string, query = '') => `${system.state.gatewayUrl}/hubs/${name}${query}`;
  const added = ({ signals }: HubClient) =>
    signals.flatMap(({ target, args }) => (target === 'InboxEntryAdded' ? [args[0]] : []));
  const lastCount = ({ signals }: HubClient) =>
    signals.findLast(({ target }) => target === 'InboxUnreadCountUpdated')?.args[0];
  const unread = async () => {
    const { body } = await api.expect(200, 'GET', '/api/me/inbox/unread-count', { token: anna.token });
    return z.object({ unread: z.number() }).parse(body).unread;
  };
  const within = (what: string, isTrue: () => boolean) =>
    until(what, 10_000, async () => (isTrue() ? true : undefined));

  test.each(TRANSPORTS)('signals of the inbox arrive within a second over %s', async (transport) => {
    const client = await connect(hub('tenant'), transport);
    const before = await unread();
    const entryId = await write(`over ${transport}`);
    const writtenAt = performance.now();
    await within('the new entry and its count', () => lastCount(client) === before + 1);
    const [first, second] = client.signals;
    expect(first).toMatchObject({ target: 'InboxEntryAdded' });
    expect(first?.args).toEqual([entryId, expect.stringMatching(/Z$/), expect.stringMatching(/^[0-9a-f]*$/)]);
    expect(second?.args).toEqual([before + 1, first?.args[1], first?.args[2]]);
    expect((second?.atMs ?? Number.POSITIVE_INFINITY) - writtenAt).toBeLessThan(1_000);
    await api.expect(204, 'POST', `/api/me/inbox/${entryId}/read`, { token: anna.token });
    await within('the count after reading', () => lastCount(client) === before);
    expect(added(client)).toEqual([entryId]);
  });

  test('a hub refuses a service, a stranger, and a token at other routes', async () => {
    const { token } = await mintWithSvid(system.state, 'service-wallet');
    const negotiate = '/hubs/tenant/negotiate?negotiateVersion=1';
    expect([401, 403]).toContain((await api.send('POST', negotiate, { token })).status);
    expect((await api.send('POST', negotiate)).status).toBe(401);
    expect((await api.send('GET', `/api/me/inbox?access_token=${anna.token}`)).status).toBe(400);
    for (const transport of TRANSPORTS) {
      const refused = connectHub(hub('tenant'), { token, transport, targets: [] });
      await expect(refused, transport).rejects.toThrow();
    }
  });

  test.each(TRANSPORTS)('a draft is designed without a language model over %s', async (transport) => {
    const targets = ['SessionStarted', 'SessionError'];
    const chat = await connectHub(hub('chat'), { token: root, transport, targets });
    onTestFinished(() => chat.stop());
    const session = await chat.invoke('StartSession');
    await chat.invoke('SendMessage', session, 'Design an approval.');
    await within('the refusal', () => chat.signals.length === 2);
    expect(chat.signals.map(({ target, args }) => [target, args[0]])).toEqual([
      ['SessionStarted', session],
      ['SessionError', 'AI_UNAVAILABLE'],
    ]);
    // A record of half a mebibyte passes the gateway and the transport.
    const title = `Over ${transport}`;
    const description = 'Long'.repeat(500);
    const id = await chat.invoke('SaveBlueprint', session, {
      title,
      description,
      notes: 'x'.repeat(500_000),
    });
    const { body } = await api.expect(200, 'GET', `/api/blueprints/${id}`, { token: root });
    expect(body).toMatchObject({ id, title, description });
    expect(await chat.invoke('ExportBlueprint', session, 'yaml')).toContain(`title: ${title}\n`);
    const refused = connectHub(hub('chat'), { token: anna.token, transport, targets });
    await expect(refused).rejects.toThrow();
  });

  test('no log has the token of a client', () => {
    const texts = ['gateway', 'tenant'].map((name) =>
      readFileSync(join(dataDir, 'logs', `${name}.log`), 'utf8'),
    );
    for (const text of texts) {
      expect(text.length).toBeGreaterThan(0);
      expect(text).not.toContain(anna.token);
    }
  });

  describe('with a second gateway and a second tenant service', () => {
    let gateway: OwnProcess | undefined;
    let replica: OwnProcess | undefined;
    let secondUrl = '';
    let ports: Readonly<Record<string, string>> = {};
    const startOfOne = (name: string) =>
      startOf(system.current().processes.find((one) => one.name === name)?.pid);

    beforeAll(async () => {
      const placed = await startOnFreePorts(startOfOne('tenant'), [
        ...SERVICE_PORTS,
        'CHANCERY_TENANT_MTLS_PORT',
        'CHANCERY_TENANT_INTERNAL_PORT',
      ]);
      replica = placed;
      ports = placed.ports;
      const second = await startOnFreePorts(startOfOne('gateway'), GATEWAY_PORTS, () => ({
        CHANCERY_TENANT_HTTPS: `127.0.0.1:${ports['CHANCERY_HTTPS_PORT']}`,
      }));
      gateway = second;
      secondUrl = `http://127.0.0.1:${second.ports['CHANCERY_GATEWAY_PORT']}/hubs/tenant`;
    });
    afterAll(async () => {
      await gateway?.kill();
      await replica?.kill();
    });

    test.each(TRANSPORTS)('a change through one of them is signalled by both, over %s', async (transport) => {
      const clients = [await connect(hub('tenant'), transport), await connect(secondUrl, transport)];
      const entryId = await write(`to both over ${transport}`);
      const writtenAt = performance.now();
      for (const { signals } of clients) {
        const isEntry = ({ args }: Received) => args[0] === entryId;
        await within('the entry', () => signals.some(isEntry));
        expect((signals.find(isEntry)?.atMs ?? 0) - writtenAt).toBeLessThan(1_000);
      }
    });

    test.each(TRANSPORTS)(
      'each request may reach another gateway and another service, over %s',
      async (by) => {
        const gateways = [system.state.gatewayUrl, secondUrl].map((url) => Number(new URL(url).port));
        const balancer = await startBalancer(gateways);
        onTestFinished(() => balancer.stop());
        const clients: HubClient[] = [];
        for (let n = 0; n < 3; n += 1) clients.push(await connect(`${balancer.url}/hubs/tenant`, by));
        const ids = [await write(`elsewhere, 1, over ${by}`), await write(`elsewhere, 2, over ${by}`)];
        for (const client of clients) await within('both entries', () => added(client).length >= 2);
        for (const client of clients) expect(added(client).slice(-2)).toEqual(ids);
        for (const count of balancer.counts) expect(count).toBeGreaterThan(1);
      },
    );

    test.each(TRANSPORTS)('kill -9 of a tenant service loses no signal, over %s', async (transport) => {
      const client = await connect(secondUrl, transport);
      const seen = await write(`before the kill over ${transport}`);
      await within('the entry before', () => added(client).includes(seen));
      const since = String(client.signals.at(-1)?.args[1]);
      await replica?.kill();
      await within('the end of the connection', () => client.isClosed());
      const missed = [await write('while away, 1'), await write('while away, 2')];
      const again = await connect(hub('tenant', `?since=${encodeURIComponent(since)}`), transport);
      const later = await write('after the return');
      await within('everything since', () => added(again).includes(later));
      // some signals may be repeated
      const expected = [...missed, later];
      const heard = [...new Set(added(again).map(String))];
      expect(heard.filter((id) => expected.includes(id))).toEqual(expected);
      replica = await startLike(startOfOne('tenant'), ports);
      const back = await connect(secondUrl, transport);
      const last = await write('with the service again');
      await within('the last entry', () => added(back).includes(last));
    });
  });

  describe('of registers', () => {
    let owner: Wallet;
    let registerId = '';

    beforeAll(async () => {
      owner = await createWallet(api, root, 'ED25519');
      registerId = await createRegister(api, root, 'Followed', owner);
      await waitOnline(api, root, registerId);
    });

    test.each(TRANSPORTS)('a sealed transaction is signalled within a second over %s', async (transport) => {
      const client = await connectHub(hub('register'), { token: root, transport, targets: registerTargets });
      onTestFinished(() => client.stop());
      await client.invoke('SubscribeToRegister', registerId);
      const submission = { registerId, sender: owner.walletAddress, payload: { transport } };
      const txId = await submitThroughRegister(api, root, submission);
      await within('the transaction', () => client.signals.some(({ args }) => args[1] === txId));
      const confirmed = client.signals.find(({ args }) => args[1] === txId);
      const sealedAt = Date.parse(String(confirmed?.args[2]));
      const receivedAt = performance.timeOrigin + (confirmed?.atMs ?? 0);
      expect(receivedAt - sealedAt).toBeLessThan(1_000);
      expect(client.signals.map(({ target }) => target)).toContain('DocketSealed');
    });
  });

  describe('of wallets', () => {
    const targets = [...Object.keys(WALLET_HUB_EVENTS), 'Replayed'];
    let database: pg.Client;

    beforeAll(async () => {
      const { DATABASE_URL: connectionString } = environmentOf(system.state, 'wallet');
      database = new pg.Client({ connectionString });
      await database.connect();
    });
    afterAll(() => database.end());

    /** The event that the storing of a credential appends. */
    async function deliver(): Promise<string> {
      const credentialId = `urn:uuid:${randomUUID()}`;
      const { walletAddress } = anna.wallet;
      const { kind, key, data } = credentialAvailable({
        walletAddress,
        platformUserId: userId,
        credentialId,
      });
      const row = [kind, key, JSON.stringify(data)];
      await database.query('INSERT INTO wallet.outbox (kind, key, data) VALUES ($1, $2, $3)', row);
      return credentialId;
    }

    test.each(TRANSPORTS)('a credential is signalled to its holder, once, over %s', async (transport) => {
      const client = await connect(hub('wallet'), transport, targets);
      const own = { replayed: 0, complete: true };
      expect(await client.invoke('SubscribeToWallet', anna.wallet.walletAddress)).toEqual(own);
      const other = await connectHub(hub('wallet'), { token: root, transport, targets });
      onTestFinished(() => other.stop());
      const foreign = other.invoke('SubscribeToWallet', anna.wallet.walletAddress);
      await expect(foreign).rejects.toThrow('Unauthorized: The wallet is not yours.');
      const ids = [await deliver(), await deliver()];
      await within('both credentials', () => client.signals.length >= 2);
      const args = (id: string | undefined) => [id, expect.stringMatching(/Z$/), ''];
      expect(client.signals.map((each) => each.args)).toEqual([args(ids[0]), args(ids[1])]);
      expect(other.signals).toEqual([]);
      const since = encodeURIComponent(String(client.signals[0]?.args[1]));
      const again = await connect(hub('wallet', `?since=${since}`), transport, targets);
      await within('the replay', () => again.signals.some(({ target }) => target === 'Replayed'));
      const repeated = again.signals.map((each) => each.args[0]);
      expect(repeated).toEqual(expect.arrayContaining(ids));
    });
  });
});
