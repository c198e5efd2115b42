import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { install, installKinds } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureSamples, namespace, release } from './installed.ts';
import { type ApiServer, kubectl, must, openApiServer } from './kubectl.ts';
import {
  hasEnded,
  holderOf,
  leaderWithStandby,
  type OperatorProcess,
  operatorPods,
} from './operator/processes.ts';
import { type Kind, type Resources, removeRun, resourcesOf } from './operator/resources.ts';
import { type OperatorRole, type Permission, readRole } from './operator/role.ts';
import { readRows } from './operator/store.ts';

/** The operator while its leader is killed, stopped and frozen, and while its role lacks a verb. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** Kills per test: the hundred of the long form are split, so that each part can be run by its name. */
const kills = full ? 25 : 5;
const parts = full ? [1, 26, 51, 76] : [1];
/** Tenants with a register each, at every kill. */
const batch = full ? 1 : 3;
/** The short form has a short lease, the long form the lease of the chart. */
const lease = full ? {} : { durationMs: 3_000, renewMs: 2_000, retryMs: 500 };
const takeoverMs = 17_000;
const handOverMs = 3_000;
const frozenMs = full ? 30_000 : 8_000;

const print = (text: string) => void process.stdout.write(`${text}\n`);
const run = Date.now().toString(36);
let api: ApiServer;
let resources: Resources;

beforeAll(async () => {
  await installKinds();
  const set = Object.entries(lease).map(([name, value]) => `operator.lease.${name}=${value}`);
  await install({ ...release, set });
  await ensureSamples(90);
  api = await openApiServer();
  resources = resourcesOf(api, namespace, run);
}, 360_000);

afterAll(async () => {
  await removeRun(namespace, run);
  await api?.stop();
}, 180_000);

explainFailures(namespace);

const tenant = (name: string) => ({ displayName: `Tenant ${name}`, subdomain: name });
const register = (name: string) => ({
  title: `Register ${name}`,
  tenantRef: { name },
  validatorSetRef: { name: 'main' },
});

/** Tenants with a register each. */
async function createSome(names: readonly string[]): Promise<void> {
  await Promise.all(
    names.flatMap((name) => [
      resources.create('Tenant', name, tenant(name)),
      resources.create('Register', name, register(name)),
    ]),
  );
}

/** Milliseconds until another process has reconciled a new Tenant. */
async function untilNextLeaderActs(former: OperatorProcess, name: string): Promise<number> {
  const startedAt = performance.now();
  await resources.create('Tenant', name, tenant(name));
  await resources.settled('Tenant', name, { isReady: false });
  const tookMs = performance.now() - startedAt;
  expect(await holderOf(api, namespace)).not.toBe(former.identity);
  return tookMs;
}

/** Replaces the pod, because the kubelet delays a container that is killed repeatedly. */
async function replacePod({ pod }: OperatorProcess): Promise<void> {
  await must('kubectl', [
    'delete',
    'pod',
    '-n',
    namespace,
    pod,
    '--grace-period=0',
    '--force',
    '--ignore-not-found',
  ]);
}

async function allReady(kinds: readonly Kind[]): Promise<void> {
  for (const kind of kinds)
    for (const { metadata } of await resources.list(kind)) await resources.settled(kind, metadata.name);
}

/** Kills the leader while it reconciles new objects; returns the milliseconds until another process acted. */
async function killOnce(kill: number): Promise<number> {
  const leader = await leaderWithStandby(api, namespace);
  const created = createSome(Array.from({ length: batch }, (_, each) => `killed-${run}-${kill}-${each}`));
  await pause(randomInt(800));
  process.kill(leader.pid, 'SIGKILL');
  // the new pod starts while the other process waits for the expiry of the lease
  const [tookMs] = await Promise.all([
    untilNextLeaderActs(leader, `canary-${run}-${kill}`),
    created,
    replacePod(leader),
  ]);
  return tookMs;
}

function printTakeovers(kill: number, took: readonly number[]): void {
  print(`kill ${kill}: another process acted after ${took.map(Math.round).join(', ')} ms`);
}

/** Expects one organisation per Tenant and one register per Register of the run. */
async function expectNothingTwice(): Promise<void> {
  const { organizations, registers, managed } = await readRows(namespace);
  for (const { metadata } of await resources.list('Tenant')) {
    const found = organizations.filter(
      ([uid, subdomain]) => uid === metadata.uid || subdomain === metadata.name,
    );
    expect(found, metadata.name).toEqual([[metadata.uid, metadata.name, expect.anything()]]);
  }
  for (const { metadata } of await resources.list('Register')) {
    const found = registers.filter(([title]) => title === register(metadata.name).title);
    expect(found, metadata.name).toHaveLength(1);
    expect(managed.filter(([uid]) => uid === metadata.uid)).toEqual([
      [metadata.uid, found[0]?.[1], expect.anything()],
    ]);
  }
}

describe('a leader that ends', () => {
  test.each(parts)(
    'by kill -9 at any moment is replaced, and nothing is made twice: kills from %i on',
    async (first) => {
      const took: number[] = [];
      for (let kill = first; kill < first + kills; kill += 1) {
        took.push(await killOnce(kill));
        if (took.length % 10 === 0) printTakeovers(kill, took.slice(-10));
      }
      printTakeovers(first + kills - 1, took);
      await allReady(['Tenant', 'Register']);
      await expectNothingTwice();
      expect(Math.max(...took)).toBeLessThan(takeoverMs);
    },
    120_000 + kills * 40_000,
  );

  test('that is stopped is replaced within 3 s', async () => {
    const leader = await leaderWithStandby(api, namespace);
    const startedAt = performance.now();
    process.kill(leader.pid, 'SIGTERM');
    const isHandedOver = async () => !['', leader.identity].includes(await holderOf(api, namespace));
    await waitFor(isHandedOver, { what: 'another leader', deadlineMs: 30_000, everyMs: 20 });
    const tookMs = performance.now() - startedAt;
    const actedMs = await untilNextLeaderActs(leader, `canary-${run}-orderly`);
    print(
      `after SIGTERM another one led after ${Math.round(tookMs)} ms and acted ${Math.round(actedMs)} ms later`,
    );
    expect(tookMs).toBeLessThan(handOverMs);
    await replacePod(leader);
  });
});

/** Versions of all objects that the operator writes, except its lease, and of the rows that its calls change. */
async function writtenState(): Promise<string> {
  const children = [
    'configmaps,services,serviceaccounts,statefulsets,poddisruptionbudgets,networkpolicies,ingresses',
    '-l',
    'app.kubernetes.io/managed-by=chancery-operator',
  ];
  const version = '{range .items[*]}{.kind}/{.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}';
  const read = (...what: readonly string[]) =>
    kubectl('get', ...what, '-n', namespace, '-o', `jsonpath=${version}`);
  const objects = await Promise.all([
    read('tenants,registers,validatorsets,persistentvolumeclaims'),
    read(...children),
  ]);
  const { organizations, managed } = await readRows(namespace);
  return `${objects.join('')}${JSON.stringify([organizations, managed])}`;
}

/** Events by one process of the operator. */
async function eventsBy({ pod }: OperatorProcess): Promise<readonly string[]> {
  const line =
    '{range .items[*]}{.reportingInstance} {.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}';
  const all = await kubectl('get', 'events.v1.events.k8s.io', '-n', namespace, '-o', `jsonpath=${line}`);
  return all.split('\n').filter((each) => each.startsWith(`${pod} `));
}

test('a frozen leader writes nothing after its lease has expired, and exits', async () => {
  const leader = await leaderWithStandby(api, namespace);
  const names = [0, 1, 2, 3].map((each) => `frozen-${run}-${each}`);
  await createSome(names);
  await pause(150);
  process.kill(leader.pid, 'SIGSTOP');
  const frozenAt = performance.now();
  try {
    for (const name of names) await resources.edit('Tenant', name, { displayName: `Renamed ${name}` });
    await untilNextLeaderActs(leader, `canary-${run}-frozen`);
    await allReady(['Tenant', 'Register']);
    await pause(Math.max(0, frozenMs - (performance.now() - frozenAt)));
    let before = '';
    const isQuiet = async () => {
      const now = await writtenState();
      const isSame = now === before;
      before = now;
      return isSame;
    };
    await waitFor(isQuiet, {
      what: 'the new leader to have nothing to do',
      deadlineMs: 60_000,
      everyMs: 1_000,
    });
    const leaderEvents = await eventsBy(leader);
    const holder = await holderOf(api, namespace);
    // the kubelet restarts an unresponsive process only after a longer time
    expect(hasEnded(leader)).toBe(false);
    print(`continued after ${Math.round(performance.now() - frozenAt)} ms`);
    process.kill(leader.pid, 'SIGCONT');
    await waitFor(() => hasEnded(leader), { what: 'the former leader to end', deadlineMs: 30_000 });
    expect(await writtenState()).toBe(before);
    expect(await eventsBy(leader)).toEqual(leaderEvents);
    expect(await holderOf(api, namespace)).toBe(holder);
  } finally {
    if (!hasEnded(leader)) process.kill(leader.pid, 'SIGCONT');
  }
}, 180_000);

/** An object whose reconcile needs a permission, and one of another kind that does not. */
interface Stimulus {
  readonly kind: Kind;
  readonly other: Kind;
}

function stimulusOf({ resource }: Permission): Stimulus {
  if (resource.startsWith('tenants')) return { kind: 'Tenant', other: 'ValidatorSet' };
  if (resource.startsWith('registers')) return { kind: 'Register', other: 'Tenant' };
  return { kind: 'ValidatorSet', other: 'Tenant' };
}

const specs: Readonly<Record<Kind, (name: string) => object>> = {
  Tenant: tenant,
  Register: (name) => ({ ...register(name), tenantRef: { name: 'acme' } }),
  // most of its children, and no pods
  ValidatorSet: () => ({ replicas: 1, suspend: true }),
};

/** A spec whose reconcile needs a permission; a disruption budget needs at least two members. */
function specFor({ resource }: Permission, kind: Kind, name: string): object {
  return resource === 'poddisruptionbudgets' ? { replicas: 2 } : specs[kind](name);
}

/** Text of the conditions and events of an object. */
async function reportedText(kind: Kind, name: string): Promise<string> {
  const about = `regarding.name=${name}`;
  const line = 'jsonpath={range .items[*]}{.note}{"\\n"}{end}';
  const events = ['get', 'events.v1.events.k8s.io', '-n', namespace, '--field-selector', about, '-o', line];
  return `${await resources.says(kind, name)}\n${await kubectl(...events)}`;
}

describe('a role that lacks a verb', () => {
  let role: OperatorRole;
  beforeAll(async () => {
    role = await readRole(api, namespace);
    // wait for operator processes that a previous test has ended
    await leaderWithStandby(api, namespace);
  });

  /** A missing permission is named in the conditions, or in an event where the status cannot be written. */
  const permissions: readonly Permission[] = [
    { resource: 'tenants', verb: 'patch' },
    { resource: 'tenants/status', verb: 'patch' },
    { resource: 'networkpolicies', verb: 'create' },
    ...(full
      ? [
          { resource: 'registers', verb: 'patch' },
          { resource: 'registers/status', verb: 'patch' },
          { resource: 'validatorsets', verb: 'patch' },
          { resource: 'validatorsets/status', verb: 'patch' },
          ...['configmaps', 'services', 'serviceaccounts', 'statefulsets', 'poddisruptionbudgets'].map(
            (resource) => ({ resource, verb: 'create' }),
          ),
          ...['configmaps', 'services', 'serviceaccounts', 'statefulsets', 'networkpolicies'].map(
            (resource) => ({
              resource,
              verb: 'patch',
            }),
          ),
        ]
      : []),
  ];

  test.each(permissions)(
    '$verb $resource says so, holds up nobody else, and goes on when it is back',
    async (lacked) => {
      const { kind, other } = stimulusOf(lacked);
      const place = permissions.indexOf(lacked);
      const name = `lacks-${place}-${run}`;
      const bystander = `beside-${place}-${run}`;
      const before = await operatorPods(api, namespace);
      const message = `cannot ${lacked.verb} resource "${lacked.resource}"`;
      await role.without(lacked, async () => {
        await resources.create(kind, name, specFor(lacked, kind, name));
        await waitFor(async () => (await reportedText(kind, name)).includes(message), {
          what: `${kind} to say: ${message}`,
          deadlineMs: 20_000,
          everyMs: 200,
        });
        await resources.create(other, bystander, specs[other](bystander));
        await resources.settled(other, bystander);
      });
      await resources.settled(kind, name);
      expect(await operatorPods(api, namespace)).toEqual(before);
    },
  );

  test.runIf(full)(
    'every one in turn: the operator lives, and all is well when it is back',
    async () => {
      for (const [place, lacked] of role.permissions.entries()) {
        const name = `any-${place}-${run}`;
        if (place % 10 === 0) print(`${place} of ${role.permissions.length} permissions were missed`);
        const before = await operatorPods(api, namespace);
        const kinds: readonly Kind[] = ['Tenant', 'Register', 'ValidatorSet'];
        await role.without(lacked, async () => {
          for (const kind of kinds) await resources.create(kind, name, specs[kind](name));
          const { other } = stimulusOf(lacked);
          await resources.settled(other, name);
        });
        for (const kind of kinds) await resources.settled(kind, name, { withinMs: 90_000 });
        expect(await operatorPods(api, namespace), JSON.stringify(lacked)).toEqual(before);
      }
    },
    3_600_000,
  );
});
