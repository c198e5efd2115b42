import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { REGISTER_HUB_EVENTS, type RegisterHubEvent } from '#core/events/hub-events.ts';
import { listenHttp } from '#kit/http/http.ts';
import { connectClient, transports } from '#kit/hub/hub.fixture.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { buildDocket } from '../../testing/build-docket.ts';
import { organizationId, startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';

const names = Object.keys(REGISTER_HUB_EVENTS) as RegisterHubEvent[];
const otherOrganization = '22222222-2222-4222-8222-222222222222';

let register: TestRegister;
let url: string;

beforeAll(async () => {
  register = await startTestRegister('hub');
  url = `http://127.0.0.1:${await listenHttp(register.app, { host: '127.0.0.1', port: 0 })}/hubs/register`;
});
afterAll(() => register.stop());

interface Heard {
  readonly name: RegisterHubEvent;
  readonly args: readonly unknown[];
}

async function follow(token: string, options: Parameters<typeof connectClient>[1] = {}) {
  const client = await connectClient(url, { token, ...options });
  const heard: Heard[] = [];
  for (const name of names) client.connection.on(name, (...args: unknown[]) => heard.push({ name, args }));
  return {
    ...client,
    heard,
    of: (name: RegisterHubEvent) => heard.filter((one) => one.name === name),
    invoke: (method: string, ...args: unknown[]) => client.connection.invoke(method, ...args),
  };
}

let made = 0;

async function sealTransactions(registerId: string, count: number): Promise<string[]> {
  const transactions = Array.from({ length: count }, () => {
    made += 1;
    return transaction({ registerId, payload: { n: made } });
  });
  const bundle = buildDocket(await register.state(registerId), transactions, register.members);
  expect(await register.ledger.writeDocket(bundle)).toMatchObject({ outcome: 'stored' });
  return transactions.map(({ txId }) => txId);
}

const distinct = (heard: readonly Heard[]) => [...new Set(heard.map(({ args }) => String(args[1])))];

describe('the register hub', () => {
  it.each(transports)(
    'tells subscribers of a sealed docket within a second, over %s',
    async (_name, transport) => {
      const registerId = await register.createRegister();
      const client = await follow('user', { transport });
      await client.invoke('SubscribeToRegister', registerId);
      const before = performance.now();
      const ids = await sealTransactions(registerId, 3);
      // Docket 0 was sealed before the subscription, but its events may become visible behind it.
      const heard = () => client.heard.filter(({ args }) => args[1] === 1 || ids.includes(String(args[1])));
      await waitFor(() => heard().filter(({ name }) => name === 'TransactionConfirmed').length === 3);
      expect(performance.now() - before).toBeLessThan(1_000);
      const facts = [expect.stringMatching(/Z$/), expect.stringMatching(/^(?:[0-9a-f]{32})?$/)];
      expect(heard()).toEqual([
        { name: 'DocketSealed', args: [registerId, 1, ...facts] },
        { name: 'DocketConfirmed', args: [registerId, 1, ...facts] },
        { name: 'RegisterHeightUpdated', args: [registerId, 1, ...facts] },
        ...ids.map((id) => ({ name: 'TransactionConfirmed', args: [registerId, id, ...facts] })),
      ]);
      await client.connection.stop();
    },
  );

  it('sends what the schemas of its events say, and no object', async () => {
    const client = await follow('admin');
    await client.invoke('SubscribeToTenant', organizationId);
    const registerId = await register.createRegister('Short lived');
    await client.invoke('SubscribeToRegister', registerId);
    await sealTransactions(registerId, 1);
    await register.call('DELETE', `/api/registers/${registerId}`, { token: 'admin' });
    await waitFor(() => client.of('RegisterDeleted').some(({ args }) => args[0] === registerId));
    expect([...new Set(client.heard.map(({ name }) => name))].toSorted()).toEqual(names.toSorted());
    for (const { name, args } of client.heard) {
      expect(REGISTER_HUB_EVENTS[name].parse(args)).toEqual(args);
      expect(args.filter((arg) => typeof arg === 'object')).toEqual([]);
    }
  });

  it('refuses registers and organisations of others', async () => {
    const registerId = await register.createRegister();
    const advertised = await register.createRegister('Advertised', { advertise: true });
    const client = await follow('outsider');
    const hidden = 'Unauthorized: The register does not exist or is not visible to your organisation.';
    await expect(client.invoke('SubscribeToRegister', registerId)).rejects.toThrow(hidden);
    await expect(client.invoke('SubscribeToRegister', 'f'.repeat(32))).rejects.toThrow(hidden);
    await expect(client.invoke('SubscribeToRegister', advertised)).rejects.toThrow(/^.*Unauthorized: /);
    await expect(client.invoke('SubscribeToRegister', 'x')).rejects.toThrow(/Invalid arguments/);
    await expect(client.invoke('SubscribeToTenant', organizationId)).rejects.toThrow(
      'Unauthorized: The organisation is not yours.',
    );
    await client.invoke('SubscribeToTenant', otherOrganization);
    await sealTransactions(registerId, 1);
    const insider = await follow('user');
    await insider.invoke('SubscribeToRegister', registerId, new Date(Date.now() - 60_000).toISOString());
    await waitFor(() => insider.of('DocketSealed').length === 2);
    expect(client.heard).toEqual([]);
  });

  it('replays what a client missed, while dockets are sealed', async () => {
    const registerId = await register.createRegister();
    const other = await register.createRegister('Other');
    const sealed: string[] = [];
    for (let n = 0; n < 3; n += 1) sealed.push(...(await sealTransactions(registerId, 4)));
    await sealTransactions(other, 2);
    const client = await follow('user');
    const since = new Date(Date.now() - 60_000).toISOString();
    const subscribing = client.invoke('SubscribeToRegister', registerId, since);
    for (let n = 0; n < 5; n += 1) sealed.push(...(await sealTransactions(registerId, 2)));
    expect(await subscribing).toMatchObject({ complete: true });
    const genesis = 1;
    await waitFor(() => distinct(client.of('TransactionConfirmed')).length === sealed.length + genesis);
    expect(distinct(client.of('TransactionConfirmed')).slice(genesis)).toEqual(sealed);
    expect(distinct(client.of('DocketSealed'))).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8']);
    expect(client.heard.every(({ args }) => args[0] === registerId)).toBe(true);
  });

  it('replays the registers of an organisation', async () => {
    const registerId = await register.createRegister();
    const client = await follow('user');
    const since = new Date(Date.now() - 60_000).toISOString();
    await client.invoke('SubscribeToTenant', organizationId, since);
    await waitFor(() => client.of('RegisterCreated').some(({ args }) => args[0] === registerId));
    await client.invoke('UnsubscribeFromTenant', organizationId);
    const later = await register.createRegister();
    const witness = await follow('user');
    await witness.invoke('SubscribeToTenant', organizationId, since);
    await waitFor(() => witness.of('RegisterCreated').some(({ args }) => args[0] === later));
    expect(client.of('RegisterCreated').some(({ args }) => args[0] === later)).toBe(false);
  });

  it('replays at most 1,000 signals and says so', async () => {
    const registerId = await register.createRegister();
    await sealTransactions(registerId, 600);
    await sealTransactions(registerId, 600);
    const client = await follow('user');
    const since = new Date(Date.now() - 60_000).toISOString();
    await waitFor(async () => {
      const replay = await client.invoke('SubscribeToRegister', registerId, since);
      expect(replay).toEqual({ replayed: 1_000, complete: false });
      return true;
    });
  });
});
