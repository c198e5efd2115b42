import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { testAuthority } from '#kit/testing/certificates.ts';
import { createOrganization } from '../harness/governance.ts';
import { TRANSPORTS, type Transport } from '../harness/hub.ts';
import { type FollowedHub, type Follower, followHub } from '../harness/hub-follower.ts';
import { metricOf } from '../harness/ops.ts';
import { inParallel } from '../harness/wait.ts';
import { removeNamespace } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { forward } from './forward.ts';
import { account } from './identity-manifests.ts';
import { changeInstallation, ensureInstalled, ensureSamples, installation, namespace } from './installed.ts';
import { apply, eventually, kubectl } from './kubectl.ts';
import { beginLoad, expectNothingLost, type Ledger, openLedger } from './ledger-under-load.ts';
import { dial } from './probe.ts';
import { within } from './running-set.ts';
import { requestFrom, type TokenListenerRequest } from './token-caller.ts';

/** Hubs through the Ingress and the gateway, with two pods of the register service, and from pods that may not reach them. */

const perSecond = 10;
/** Clients of each hub over each transport; a person may have 20 connections to a hub. */
const perTransport = 6;

let ledger: Ledger;
/** Another organisation of the system administrator, in which their roles change. */
let awayUsers = '';

beforeAll(async () => {
  await ensureInstalled();
  await changeInstallation('register.replicas=2');
  await ensureSamples(90);
  ledger = await openLedger('invoices');
  const { id } = await createOrganization(ledger.api, ledger.root, 'away');
  awayUsers = `/api/organizations/${id}/users`;
}, 480_000);

afterAll(() => changeInstallation(), 180_000);

explainFailures(namespace);

const entriesSchema = z.object({ entries: z.array(z.object({ id: z.string() })) });
const usersSchema = z.object({ items: z.tuple([z.object({ id: z.string() })]) });

/** Ids of all entries in the inbox of the system administrator. */
async function entries(): Promise<string[]> {
  const ids: string[] = [];
  for (let page = 1; ; page += 1) {
    const path = `/api/me/inbox?pageSize=100&page=${page}`;
    const { body } = await ledger.api.expect(200, 'GET', path, { token: ledger.root });
    const found = entriesSchema.parse(body).entries.map(({ id }) => id);
    ids.push(...found);
    if (found.length < 100) return ids;
  }
}

/** Starts clients of a hub through the Ingress, over each transport. */
async function followAll(hub: Pick<FollowedHub, 'token' | 'registerId'>, path: string): Promise<Follower[]> {
  const url = `${ledger.api.baseUrl}${path}`;
  const transports = TRANSPORTS.flatMap((transport) => Array.from({ length: perTransport }, () => transport));
  const clients = await inParallel(transports, transports.length, (transport) =>
    followHub({ ...hub, url, transport }),
  );
  onTestFinished(async () => void (await inParallel(clients, clients.length, (client) => client.stop())));
  return clients;
}

const followRegister = () => {
  const { token, registerId } = ledger;
  return followAll({ token, registerId }, '/hubs/register');
};

const podsSchema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), deletionTimestamp: z.string().optional() }),
      status: z.object({ podIP: z.string().default('') }),
    }),
  ),
});

/** Names and addresses of the pods of a service that are not terminating. */
async function podsOf(
  service: string,
): Promise<readonly { readonly name: string; readonly address: string }[]> {
  const select = ['-l', `chancery.dev/client-id=${service}`];
  const { items } = podsSchema.parse(
    JSON.parse(await kubectl('-n', namespace, 'get', 'pods', ...select, '-o', 'json')),
  );
  return items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata, status }) => ({ name: metadata.name, address: status.podIP }));
}

/** Event streams and polling clients that each pod of the register service has had. */
async function openedByPod(): Promise<number[]> {
  return inParallel(await podsOf('service-register'), 2, async ({ name }) => {
    const { address, stop } = await forward(namespace, `pod/${name}`, 9090);
    const count = (transport: Transport) =>
      metricOf(address, 'chancery_register_hub_connections_total', `transport="${transport}"`);
    try {
      return (await count('ServerSentEvents')) + (await count('LongPolling'));
    } finally {
      await stop();
    }
  });
}

const hasAll = (ids: readonly string[], target: string) => (follower: Follower) => {
  const heard = new Set(follower.subjects(target));
  return ids.every((id) => heard.has(id));
};

test('event streams and polls work on any of two pods, without sticky sessions', async () => {
  const clients = await followRegister();
  const opened = await openedByPod();
  expect(opened).toHaveLength(2);
  for (const count of opened) expect(count, opened.join(' and ')).toBeGreaterThan(0);
  const load = beginLoad(ledger, perSecond);
  await within('the load to be accepted', 30_000, async () => load.accepted.size > perSecond);
  await load.stop();
  await within('every client to have it', 60_000, async () =>
    clients.every(hasAll([...load.accepted], 'TransactionConfirmed')),
  );
  expect(clients.map((client) => [client.connections(), client.errors])).toEqual(clients.map(() => [1, []]));
}, 180_000);

/**
 * Changes the roles of the system administrator in the other organisation until it is stopped. Each change is an entry in
 * the inbox, and ends no session of their first organisation.
 */
async function beginRoleChanges(): Promise<{ stop(): Promise<void> }> {
  const { api, root: token } = ledger;
  const [{ id }] = usersSchema.parse((await api.expect(200, 'GET', awayUsers, { token })).body).items;
  let isStopped = false;
  const run = async (): Promise<void> => {
    for (let n = 0; !isStopped; n += 1) {
      const json = { roles: n % 2 === 0 ? ['Administrator', 'Auditor'] : ['Administrator'] };
      await api.expect([200, 502, 503, 504], 'PUT', `${awayUsers}/${id}/role`, { token, json });
      await pause(250);
    }
  };
  const running = run();
  // `stop` rejects with the error
  running.catch(() => undefined);
  return {
    stop: () => {
      isStopped = true;
      return running;
    },
  };
}

async function roll(...services: readonly string[]): Promise<void> {
  const deployments = services.map((service) => `deployment/${service}`);
  await kubectl('-n', namespace, 'rollout', 'restart', ...deployments);
  for (const one of deployments) await kubectl('-n', namespace, 'rollout', 'status', one, '--timeout=120s');
}

test('clients of both hubs get every signal while services and gateway are rolled', async () => {
  const before = await entries();
  const ofRegister = await followRegister();
  const ofInbox = await followAll({ token: ledger.root }, '/hubs/tenant');
  const clients = [...ofRegister, ...ofInbox];
  const changes = await beginRoleChanges();
  const load = beginLoad(ledger, perSecond);
  try {
    await roll('service-register', 'service-tenant');
    await roll('service-gateway');
  } finally {
    await load.stop();
    await changes.stop();
  }
  await expectNothingLost(ledger, load);
  const [accepted, written] = [[...load.accepted], (await entries()).filter((id) => !before.includes(id))];
  expect(accepted.length).toBeGreaterThan(10 * perSecond);
  expect(written.length).toBeGreaterThan(10);
  await within('every client to have every signal', 60_000, async () => {
    const isWhole = [hasAll(accepted, 'TransactionConfirmed'), hasAll(written, 'InboxEntryAdded')] as const;
    return ofRegister.every(isWhole[0]) && ofInbox.every(isWhole[1]);
  });
  for (const client of ofRegister) {
    const numbers = client.subjects('DocketSealed').map(Number);
    expect(numbers).toEqual(numbers.map((_, place) => (numbers[0] ?? 0) + place));
  }
  expect(clients.filter((client) => client.connections() < 2)).toEqual([]);
  expect(clients.filter((client) => client.incomplete() > 0)).toEqual([]);
  const connections = clients.reduce((sum, client) => sum + client.connections(), 0);
  process.stdout.write(
    `${clients.length} clients, ${connections} connections; ${accepted.length} transactions, ${written.length} entries\n`,
  );
}, 300_000);

test('a pod of another namespace has no connection to the pods of a hub', async () => {
  const elsewhere = `chancery-no-hub-${process.pid}`;
  await kubectl('create', 'namespace', elsewhere);
  onTestFinished(() => removeNamespace(elsewhere));
  await eventually(() => kubectl('get', 'serviceaccount', 'default', '-n', elsewhere));
  const pods = [...(await podsOf('service-register')), ...(await podsOf('service-tenant'))];
  expect(pods).toHaveLength(3);
  const targets = pods.map(({ address }) => `${address}:7443`);
  // with the labels of the service, too
  const labels = { 'app.kubernetes.io/part-of': 'chancery', 'chancery.dev/client-id': 'service-register' };
  for (const probe of [{ name: 'plain' }, { name: 'labelled', labels }]) {
    const found = await dial({ namespace: elsewhere, ...probe }, targets);
    expect(found, probe.name).toEqual(Object.fromEntries(targets.map((target) => [target, 'silent'])));
  }
}, 120_000);

test('a pod with the labels of the register service, but not its identity, reaches no hub', async () => {
  const serviceAccount = 'validator-other';
  await apply(namespace, account({ namespace }, serviceAccount));
  onTestFinished(
    async () => void (await kubectl('-n', namespace, 'delete', `serviceaccount/${serviceAccount}`)),
  );
  const [pod] = await podsOf('service-register');
  const to = {
    host: pod?.address ?? '',
    port: 7443,
    id: `spiffe://${installation}/service/service-register`,
  };
  const hub = '/hubs/register';
  const { key, cert } = await (await testAuthority(installation)).issue('service-register');
  const certificates = { own: 'svid', none: 'nothing', foreign: { key, cert } } as const;
  const asks = Object.entries(certificates).flatMap(([name, by]): [string, TokenListenerRequest][] => [
    [`${name}, negotiation`, { by, to, path: `${hub}/negotiate?negotiateVersion=1` }],
    [`${name}, poll`, { by, to, path: `${hub}?id=${'A'.repeat(64)}`, method: 'GET' }],
  ]);
  const caller = { name: 'other-0', serviceAccount, takenFor: 'service-register' };
  const { id, responses } = await requestFrom(caller, Object.fromEntries(asks));
  expect(id).toBe(`spiffe://${installation}/service/validator-other-0`);
  const inHandshake = { refused: expect.stringMatching(/^(?:ERR_SSL_\w+|ECONNRESET|EPROTO|EPIPE)$/) };
  const withoutToken = expect.objectContaining({ status: 401 });
  expect(responses).toEqual({
    'own, negotiation': withoutToken,
    'own, poll': withoutToken,
    'none, negotiation': inHandshake,
    'none, poll': inHandshake,
    'foreign, negotiation': inHandshake,
    'foreign, poll': inHandshake,
  });
}, 180_000);
