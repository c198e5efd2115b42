import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import type { SteadyLoad } from '../fault/steady-load.ts';
import { apiServer, hasApiServerPower } from './api-server-power.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace } from './installed.ts';
import { type ApiServer, kubectl, openApiServer } from './kubectl.ts';
import { beginLoad, expectNothingLost, type Ledger, openLedger } from './ledger-under-load.ts';
import { interruptionSince, type Observer, observe } from './operator/observer.ts';
import {
  holderOf,
  leaderWithStandby,
  type OperatorProcess,
  operatorPods,
  standbyOf,
} from './operator/processes.ts';
import { type Kind, type Resources, removeRun, resourcesOf } from './operator/resources.ts';

/** The API server is killed and started again, during edits and transactions. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** Time limits: detection of a closed connection, and completion of the edits in between. */
const noticedWithinMs = 2_000;
const carriedOutMs = 60_000;
/** Without data for this time a cache is stale. */
const staleSeconds = 180;
const awayMs = 200_000;
const perSecond = 10;

const print = (text: string) => void process.stdout.write(`${text}\n`);
if (!hasApiServerPower) print('API_SERVER_POWER is not set: the restart of the API server is skipped');

const run = Date.now().toString(36);
const setName = `away-${run}`;
const names = {
  Tenant: [0, 1, 2, 3].map((each) => `away-${run}-${each}`),
  Register: [0, 1].map((each) => `away-${run}-${each}`),
  ValidatorSet: [setName],
} as const;
const kinds = ['Tenant', 'Register', 'ValidatorSet'] as const;
const all: readonly EditedObject[] = kinds.flatMap((kind) => names[kind].map((name) => ({ kind, name })));

interface EditedObject {
  readonly kind: Kind;
  readonly name: string;
}

const nameAfter = (name: string, edit: number) => `Edit ${edit} of ${name}`;

/** Desired content of an object after this number of edits. */
const specs: Readonly<Record<Kind, (name: string, edit: number) => object>> = {
  Tenant: (name, edit) => ({ displayName: nameAfter(name, edit), subdomain: name }),
  Register: (name, edit) => ({
    title: nameAfter(name, edit),
    tenantRef: { name: 'acme' },
    validatorSetRef: { name: 'main' },
  }),
  // most of its children, and no pods
  ValidatorSet: (_, edit) => ({
    replicas: 1,
    suspend: true,
    podAnnotations: { 'example.org/edit': `${edit}` },
  }),
};

let api: ApiServer;
let resources: Resources;
let ledger: Ledger;
let edits = 0;
/** The last edit of each object. */
const lastEdits = new Map<string, number>();
const lastOf = (kind: Kind, name: string) => lastEdits.get(`${kind}/${name}`) ?? 0;

beforeAll(async () => {
  await ensureInstalled();
  await ensureSamples(90);
  api = await openApiServer();
  resources = resourcesOf(api, namespace, run);
  ledger = await openLedger('invoices');
  for (const { kind, name } of all) await resources.create(kind, name, specs[kind](name, 0));
  for (const each of all) await settled(each);
}, 360_000);

afterEach(async () => {
  await apiServer('start');
  await retryUntilDone('the API server', async () => {
    expect((await api.request('GET', '/version')).status).toBe(200);
  });
});

afterAll(async () => {
  await removeRun(namespace, run);
  await api?.stop();
}, 180_000);

explainFailures(namespace);

/** Whether the operator has reconciled the object; a set without pods is not Ready. */
const settled = ({ kind, name }: EditedObject) =>
  resources.settled(kind, name, { isReady: kind !== 'ValidatorSet', withinMs: carriedOutMs });

/** Retries a call until it succeeds. */
async function retryUntilDone(what: string, act: () => Promise<unknown>): Promise<void> {
  const done = async () => {
    await act();
    return true;
  };
  await waitFor(done, { what, deadlineMs: 60_000, everyMs: 20 });
}

async function edit({ kind, name }: EditedObject): Promise<void> {
  edits += 1;
  const spec = specs[kind](name, edits);
  await retryUntilDone(`the edit of ${name}`, () => resources.edit(kind, name, spec));
  lastEdits.set(`${kind}/${name}`, edits);
}

const policyPath = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies/${setName}`;

/** Uid of the NetworkPolicy of the set; undefined without one. */
async function policyUid(): Promise<string | undefined> {
  const { metadata } = (await api.request('GET', policyPath)).body as { metadata?: { uid?: string } };
  return metadata?.uid;
}

/** Edits every object at once and deletes a child, then edits one object after the other. */
async function editWhileWatchesReturn(): Promise<void> {
  await edit(all[0] as EditedObject);
  await retryUntilDone('the deletion', async () => {
    expect([200, 404]).toContain((await api.request('DELETE', policyPath)).status);
  });
  for (let round = 0; round < 6; round += 1)
    for (const each of all) {
      await edit(each);
      await pause(round === 0 ? 0 : 150);
    }
}

/** Expects every last edit to be carried out in the services and in the children of the set. */
async function expectCarriedOut(formerPolicy: string | undefined): Promise<void> {
  for (const each of all) await settled(each);
  const { root, token, api: gateway } = ledger;
  const read = async (what: string, path: string, caller: string) => {
    const [collection = '', member = ''] = path.split('/');
    const id = await kubectl('-n', namespace, 'get', what, '-o', `jsonpath={.status.${member}}`);
    return (await gateway.expect(200, 'GET', `/api/${collection}/${id}`, { token: caller })).body;
  };
  for (const name of names.Tenant) {
    const organization = await read(`ten/${name}`, 'organizations/organizationId', root);
    expect(organization).toMatchObject({ name: nameAfter(name, lastOf('Tenant', name)) });
  }
  for (const name of names.Register) {
    const register = await read(`reg/${name}`, 'registers/registerId', token);
    expect(register).toMatchObject({ title: nameAfter(name, lastOf('Register', name)) });
  }
  const path = `/apis/apps/v1/namespaces/${namespace}/statefulsets/${setName}`;
  const { body } = await api.request('GET', path);
  expect(JSON.stringify(body['spec'])).toContain(`"example.org/edit":"${lastOf('ValidatorSet', setName)}"`);
  const isPutBack = async () => ![undefined, formerPolicy].includes(await policyUid());
  await waitFor(isPutBack, { what: 'the deleted child', deadlineMs: carriedOutMs, everyMs: 100 });
}

interface Watched {
  readonly leader: OperatorProcess;
  readonly leading: Observer;
  readonly standing: Observer;
  readonly load: SteadyLoad;
}

/** Runs an action while both operator processes are observed, and expects no transaction to be lost. */
async function whileObserved(act: (watched: Watched) => Promise<void>): Promise<void> {
  const leader = await leaderWithStandby(api, namespace);
  const leading = await observe(leader);
  const standing = await observe(await standbyOf(api, namespace, leader));
  const load = beginLoad(ledger, perSecond);
  try {
    await moreAccepted(load);
    await act({ leader, leading, standing, load });
  } finally {
    await Promise.all([load.stop(), leading.stop(), standing.stop()]);
  }
  const { transactions, dockets } = await expectNothingLost(ledger, load);
  print(`${load.accepted.size} were accepted, ${load.refused} refused for the time being, none lost`);
  print(`${transactions} are sealed in ${dockets} dockets`);
}

async function moreAccepted({ accepted }: SteadyLoad): Promise<void> {
  const goal = accepted.size + perSecond;
  await waitFor(() => accepted.size >= goal, { what: 'transactions to be accepted', deadlineMs: 20_000 });
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/** Expects every broken watch to be detected in time and every kind to be listed at most once. */
function expectFewLists(observer: Observer, killedAtMs: number): void {
  const { informers, noticedMs, lists } = interruptionSince(observer, killedAtMs);
  const slowest = Math.max(...noticedMs.values());
  const listed = [...lists.values()].reduce((sum, count) => sum + count, 0);
  print(`${observer.pod}: ${informers.length} watches broke, known after ${slowest} ms; ${listed} lists`);
  expect(informers.length).toBeGreaterThanOrEqual(12);
  expect([...noticedMs.keys()].toSorted()).toEqual(informers.toSorted());
  expect(slowest).toBeLessThanOrEqual(noticedWithinMs);
  expect([...lists].filter(([, count]) => count > 1)).toEqual([]);
}

/** Waits for data about every kind; returns the milliseconds since the given time. */
async function untilAllHeard({ samples, pod }: Observer, sinceMs: number): Promise<number> {
  const isHeard = () => {
    const first = samples.find(
      ({ atMs, ages }) => ages.size > 0 && 1_000 * Math.max(...ages.values()) < atMs - sinceMs,
    );
    return first && first.atMs - sinceMs;
  };
  return waitFor(isHeard, { what: `${pod} to hear of all`, deadlineMs: carriedOutMs, everyMs: 100 });
}

/** Expects a process to be ready exactly while none of its caches is stale. */
function expectConsistentReadiness({ pod, samples }: Observer): void {
  // age and readiness are not read at the same moment
  const wrong = samples.filter(({ ages, ready }) => {
    const age = Math.max(...ages.values());
    const isUnsure = Math.abs(age - staleSeconds) < 1;
    return ready !== 0 && !isUnsure && age > staleSeconds === (ready === 200);
  });
  expect(wrong, pod).toEqual([]);
}

test.skipIf(!hasApiServerPower)(
  'a restart of the API server is noticed within 2 s and costs a list a kind at most; no edit is missed, no transaction lost, no process ends',
  async () => {
    const pods = await operatorPods(api, namespace);
    await whileObserved(async ({ leader, leading, standing, load }) => {
      const formerPolicy = await policyUid();
      // the events of these edits may be in flight when the server is killed
      for (const each of all) await edit(each);
      const killedAtMs = Date.now();
      await apiServer('kill');
      await moreAccepted(load);
      // A watch may return before the first edit is accepted, and a quiet kind then says nothing for a minute.
      const startedAtMs = Date.now();
      await apiServer('start');
      await edit(all[0] as EditedObject);
      const backMs = Date.now() - killedAtMs;
      await editWhileWatchesReturn();
      const editedAt = performance.now();
      await expectCarriedOut(formerPolicy);
      print(
        `back after ${seconds(backMs)}; as wanted ${seconds(performance.now() - editedAt)} after the last edit`,
      );
      for (const each of [leading, standing]) {
        print(`${each.pod} heard of all ${seconds(await untilAllHeard(each, startedAtMs))} after its start`);
        expectFewLists(each, killedAtMs);
        expectConsistentReadiness(each);
      }
      expect(await holderOf(api, namespace)).toBe(leader.identity);
    });
    expect(await operatorPods(api, namespace)).toEqual(pods);
  },
  180_000,
);

/** Exit code of the previous container of a pod; empty without a restart. */
async function formerEnd(pod: string): Promise<string> {
  const path = 'jsonpath={.status.containerStatuses[0].lastState.terminated.exitCode}';
  return kubectl('-n', namespace, 'get', 'pod', pod, '-o', path);
}

test.runIf(full && hasApiServerPower)(
  'while the API server is away for long whoever stands by says that it is stale, who led ends in good order, and transactions go on',
  async () => {
    const pods = await operatorPods(api, namespace);
    await whileObserved(async ({ leader, leading, standing, load }) => {
      const formerPolicy = await policyUid();
      for (const each of all) await edit(each);
      const killedAt = performance.now();
      await apiServer('kill');
      while (performance.now() - killedAt < awayMs) {
        await moreAccepted(load);
        await pause(1_000);
      }
      expect(standing.samples.at(-1)?.ready).toBe(503);
      expect(standing.samples.at(-1)?.why).toMatch(/nothing was heard about .* for \d+ s/);
      expect(leading.samples.at(-1)?.ready).not.toBe(200);
      await apiServer('start');
      const startedAt = performance.now();
      await editWhileWatchesReturn();
      await expectCarriedOut(formerPolicy);
      await leaderWithStandby(api, namespace);
      print(
        `away for ${seconds(awayMs)}; all as wanted ${seconds(performance.now() - startedAt)} after its start`,
      );
      expectConsistentReadiness(standing);
      const restarts = [...(await operatorPods(api, namespace))].map(
        ([pod, now]) => [pod, now.restarts - (pods.get(pod)?.restarts ?? 0)] as const,
      );
      expect(new Map(restarts)).toEqual(
        new Map([
          [standing.pod, 0],
          [leader.pod, 1],
        ]),
      );
      expect(await formerEnd(leader.pod)).toBe('0');
    });
  },
  600_000,
);
