import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { install, installKinds, type Release, removeNamespace, waitReady } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { forward } from './forward.ts';
import { apply, kubectl, run } from './kubectl.ts';

/** Deletions of objects while their services are unavailable, and of a whole namespace. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** How long the services are unavailable after the deletions; longer than the retry interval. */
const awayMs = full ? 600_000 : 30_000;
/** Calls per minute for one waiting object. */
const callsAMinute = 3;

const release: Release = {
  name: 'leaving',
  namespace: `chancery-leaving-${process.pid}`,
  set: ['ingress.enabled=false', 'operator.replicas=1'],
};
const { namespace } = release;
const services = ['deployment/service-tenant', 'deployment/service-register'];
const apiVersion = 'chancery.dev/v1alpha1';

const tenant = (name: string, deletionPolicy: string) => ({
  apiVersion,
  kind: 'Tenant',
  metadata: { name },
  spec: { displayName: `Tenant ${name}`, subdomain: name, deletionPolicy },
});
const register = (name: string, deletionPolicy: string) => ({
  apiVersion,
  kind: 'Register',
  metadata: { name },
  spec: { title: name, tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' }, deletionPolicy },
});
const set = { apiVersion, kind: 'ValidatorSet', metadata: { name: 'main' }, spec: { replicas: 1 } };
const blocked = ['tenant/doomed', 'tenant/forced', 'register/doomed'];

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const within = <T>(what: string, deadlineMs: number, check: () => Promise<T>) =>
  waitFor(check, { what, deadlineMs, everyMs: 200 });
const isGone = async (object: string) =>
  (await run('kubectl', ['get', '-n', namespace, object, '-o', 'name'])).err.includes('NotFound');
const ready = (object: string, member: string) =>
  look('get', object, '-o', `jsonpath={.status.conditions[?(@.type=="Ready")].${member}}`);

async function scale(replicas: number): Promise<void> {
  await look('scale', ...services, `--replicas=${replicas}`);
  if (replicas > 0) return waitReady(namespace, 60_000);
  const pods = ['pod', '-l', 'app.kubernetes.io/name in (tenant, register)'];
  await look('wait', '--for=delete', '--timeout=60s', ...pods);
}

/** Work of the operator since its start. */
interface Work {
  /** Reconciles of tenants and registers. */
  readonly tenants: number;
  readonly registers: number;
  /** Write calls without those of the lease. */
  readonly writes: number;
}

async function workDone(): Promise<Work> {
  const door = await forward(namespace, 'service-operator', 9090);
  try {
    const text = await (await fetch(`http://${door.address}/metrics`)).text();
    const sum = (pattern: RegExp) =>
      (text.match(pattern) ?? []).reduce((total, line) => total + Number(line.split(' ').at(-1)), 0);
    return {
      tenants: sum(/^controller_runtime_reconcile_total\{.*controller="tenant".*$/gm),
      registers: sum(/^controller_runtime_reconcile_total\{.*controller="register".*$/gm),
      writes: sum(/^rest_client_requests_total\{.*method="(?:PATCH|POST|DELETE)".*$/gm),
    };
  } finally {
    await door.stop();
  }
}

beforeAll(async () => {
  await installKinds();
  await install(release);
  const tenants = [tenant('acme', 'Suspend'), tenant('doomed', 'Delete'), tenant('forced', 'Delete')];
  const registers = [register('kept', 'Retain'), register('doomed', 'Purge'), register('purged', 'Purge')];
  await apply(namespace, set, ...tenants, ...registers);
  await look('wait', '--for=condition=Ready', '--timeout=90s', 'ten,vset,reg', '--all');
}, 300_000);

afterAll(() => removeNamespace(namespace), 200_000);

explainFailures(namespace);

test(
  'what cannot be cleaned up says so within 5 s, and costs few looks',
  async () => {
    await scale(0);
    await look('delete', '--wait=false', ...blocked);
    await within('all to say so', 5_000, async () => {
      const reasons = await Promise.all(blocked.map((each) => ready(each, 'reason')));
      return reasons.every((each) => each === 'DeletionBlocked');
    });
    expect(await ready('tenant/doomed', 'message')).toContain('Cannot be deleted yet');
    const before = await workDone();
    const startedAt = performance.now();
    await pause(awayMs);
    const after = await workDone();
    const minutes = (performance.now() - startedAt) / 60_000;
    const [tenants, registers] = [after.tenants - before.tenants, after.registers - before.registers];
    const writes = after.writes - before.writes;
    const text = `${tenants} looks at tenants, ${registers} at registers, ${writes} writes`;
    process.stdout.write(`away for ${minutes.toFixed(1)} min: ${text}\n`);
    // one additional call per object: half a minute has two at most
    const each = Math.floor(callsAMinute * minutes) + 1;
    // the remaining tenant and two registers are retried with backoff from 100 ms on
    const eachThatStays = Math.ceil(Math.log2(minutes * 600)) + 1;
    expect(tenants).toBeGreaterThan(0);
    expect(tenants).toBeLessThanOrEqual(2 * each + eachThatStays);
    expect(registers).toBeLessThanOrEqual(each + 2 * eachThatStays);
    // a status and an event for each of the six; the set may write once per minute
    expect(writes).toBeLessThanOrEqual(2 * 6 + Math.ceil(minutes));
    for (const name of blocked) expect(await ready(name, 'reason')).toBe('DeletionBlocked');
  },
  awayMs + 90_000,
);

test('only the right uid forces a deletion', async () => {
  const force = (uid: string) =>
    look('annotate', '--overwrite', 'tenant/forced', `chancery.dev/force-delete=${uid}`);
  await force(await look('get', 'tenant/doomed', '-o', 'jsonpath={.metadata.uid}'));
  await within('the complaint', 15_000, async () => {
    const notes = await look('get', 'events', '-o', 'jsonpath={.items[*].message}');
    return notes.includes('chancery.dev/force-delete is ignored: its value is not the uid');
  });
  expect(await isGone('tenant/forced')).toBe(false);
  await force(await look('get', 'tenant/forced', '-o', 'jsonpath={.metadata.uid}'));
  // a pending call of the silent service ends after 10 s
  await within('it to go', 15_000, () => isGone('tenant/forced'));
}, 60_000);

test('waiting deletions end within 60 s of the return of their service', async () => {
  await scale(1);
  const backAt = performance.now();
  const left = ['tenant/doomed', 'register/doomed'];
  await Promise.all(left.map((each) => within(each, 60_000, () => isGone(each))));
  process.stdout.write(`gone after ${((performance.now() - backAt) / 1_000).toFixed(1)} s\n`);
}, 130_000);

test('a namespace is deleted with all objects that keep their data; the others name the remedy', async () => {
  await kubectl('delete', 'namespace', namespace, '--wait=false');
  for (const each of ['vset/main', 'tenant/acme', 'register/kept'])
    await within(`${each} to go`, 90_000, () => isGone(each));
  const message = await ready('register/purged', 'message');
  const commands = message.match(/kubectl [^:]*(?:\/purged)[^;]*?(?=$| and then:)/g) ?? [];
  expect(commands).toHaveLength(2);
  for (const command of commands) {
    const { code, err } = await run('sh', ['-c', command]);
    expect([code, err]).toEqual([0, '']);
  }
  await kubectl('wait', '--for=delete', `namespace/${namespace}`, '--timeout=60s');
}, 200_000);
