import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createLogger } from '#kit/log/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type ApiServer, apply, kubectl, openApiServer, run } from '../../e2e/cluster/kubectl.ts';
import { type ControllerFactory, createOperator } from '../compose.ts';
import { operatorSettings } from '../config.ts';
import { type FaultyProxy, openFaultyProxy, type ProxiedCall } from '../kube/testing/faulty-proxy.ts';
import { setOf } from '../plan/testing/objects.ts';
import type { Platform } from '../platform/clients.ts';
import { FakeMembers } from '../platform/testing/fake-members.ts';
import { fakeOrganizations } from '../platform/testing/fake-organizations.ts';
import { fakeRegisters } from '../platform/testing/fake-registers.ts';
import { installationMap, installationText } from '../platform/testing/installation.fixture.ts';
import { createReconciler } from './reconciler/reconciler.ts';
import { registerKind } from './register/register.ts';
import { tenantKind } from './tenant/tenant.ts';
import { createValidatorSetController } from './validator-set/controller.ts';

/** The operator as a local process, with a real API server behind a proxy that injects faults into a quarter of all calls. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const faultsMs = full ? 600_000 : 30_000;
const edits = full ? 200 : 40;
/** Share of each of five kinds of faults. */
const share = 0.05;
const MERGE = 'application/merge-patch+json';

const root = join(fileURLToPath(import.meta.url), '../../..');
const namespace = `chancery-faults-${process.pid}`;
const organizations = fakeOrganizations();
const ledgers = fakeRegisters();
const members = new FakeMembers();
const platform: Platform = {
  of: async () => ({ organizations, registers: ledgers, wallets: ledgers }),
  stop: () => undefined,
};
const controllers: ControllerFactory = (dependencies) => [
  createValidatorSetController({ dependencies, members, principals: members }),
  createReconciler(dependencies, tenantKind(dependencies, platform)),
  createReconciler(dependencies, registerKind(dependencies, platform)),
];

const names = {
  Tenant: Array.from({ length: 6 }, (_, place) => `t${place}`),
  Register: Array.from({ length: 4 }, (_, place) => `r${place}`),
  ValidatorSet: ['s0', 's1'],
} as const;
type KindHandler = keyof typeof names;
const kinds = Object.keys(names) as KindHandler[];
const plurals = { Tenant: 'tenants', Register: 'registers', ValidatorSet: 'validatorsets' } as const;
const all = kinds.flatMap((kind) => names[kind].map((name) => ({ kind, name })));

/** Desired content of an object after this number of edits. */
const specs: Readonly<Record<KindHandler, (name: string, edit: number) => object>> = {
  Tenant: (name, edit) => ({ displayName: `Tenant ${edit}`, subdomain: `tenant-${name}` }),
  Register: (_, edit) => ({
    title: `Register ${edit}`,
    tenantRef: { name: 't0' },
    validatorSetRef: { name: 'main' },
  }),
  // all its children, and no pods
  ValidatorSet: (_, edit) => ({
    replicas: 4,
    suspend: true,
    podAnnotations: { 'example.org/edit': `${edit}` },
  }),
};

interface StoredObject {
  readonly metadata: { readonly name: string; readonly uid: string; readonly generation: number };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly observedGeneration?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

let api: ApiServer;
let proxy: FaultyProxy;
let operator: Component | undefined;
let sealing: NodeJS.Timeout;
/** Number of lost leases; the test restarts the process like the kubelet. */
let losses = 0;
let edited = 0;
const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown) => void unhandled.push(reason);

const pathOf = (kind: KindHandler) => `/apis/chancery.dev/v1alpha1/namespaces/${namespace}/${plurals[kind]}`;
const objectOf = (kind: KindHandler, name: string, spec: object, annotations = {}) => ({
  apiVersion: 'chancery.dev/v1alpha1',
  kind,
  metadata: { name, namespace, annotations },
  spec,
});

async function merge(kind: KindHandler, name: string, body: object, part = ''): Promise<void> {
  const { status } = await api.request('PATCH', `${pathOf(kind)}/${name}${part}`, body, MERGE);
  expect(status).toBe(200);
}

async function itemsAt(path: string): Promise<readonly StoredObject[]> {
  return ((await api.request('GET', path)).body as { readonly items: readonly StoredObject[] }).items;
}

function isSettled({ metadata, status }: StoredObject): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return status?.observedGeneration === metadata.generation && ready?.status === 'True';
}

/** Every object and its result: organisations, registers, StatefulSets. */
async function hasConverged(): Promise<boolean> {
  for (const kind of kinds) {
    const desired = (await itemsAt(pathOf(kind))).filter(({ metadata }) => metadata.name !== 'main');
    if (desired.length !== names[kind].length || !desired.every(isSettled)) return false;
    for (const { metadata, spec } of desired) {
      if (kind === 'Tenant' && (await organizations.find(metadata.uid))?.name !== spec['displayName'])
        return false;
      if (kind === 'Register' && (await ledgers.find(metadata.uid))?.title !== spec['title']) return false;
    }
  }
  const sets = await itemsAt(`/apis/apps/v1/namespaces/${namespace}/statefulsets`);
  const desired = new Map(
    (await itemsAt(pathOf('ValidatorSet'))).map(({ metadata, spec }) => [metadata.name, spec]),
  );
  return sets.every(({ metadata, spec }) => {
    const annotations = JSON.stringify(desired.get(metadata.name)?.['podAnnotations'] ?? {}).slice(1, -1);
    return JSON.stringify(spec['template']).includes(annotations);
  });
}

/** Calls of reconciles since then, without the lease, lists and watches, which do not depend on edits. */
function callsSince(first: number): number {
  const isReconcile = ({ method, path }: ProxiedCall) =>
    !path.includes('/leases') && (method !== 'GET' || !/\/[a-z]+s$/.test(path));
  return proxy.calls.slice(first).filter(isReconcile).length;
}

/** Edits one object after the other. */
async function edit(count: number, everyMs: number): Promise<void> {
  for (let place = 0; place < count; place += 1) {
    const { kind, name } = all[place % all.length] ?? { kind: 'Tenant', name: 't0' };
    edited += 1;
    if (edited % 20 === 0) process.stdout.write(`${edited} edits, ${losses} leases lost\n`);
    await merge(kind, name, { spec: specs[kind](name, edited) });
    await pause(everyMs);
  }
}
async function startOperator(kubeconfig: string): Promise<void> {
  operator = await start({
    service: 'operator',
    schema: operatorSettings,
    log: createLogger({ service: 'operator', level: 'fatal' }),
    create: createOperator(controllers, () => {
      losses += 1;
      void operator?.stop().then(() => startOperator(kubeconfig));
    }),
    env: {
      CHANCERY_INSTALLATION: installationText.installation,
      CHANCERY_LISTEN_HOST: '127.0.0.1',
      CHANCERY_OPS_PORT: '0',
      SPIFFE_ENDPOINT_SOCKET: 'unix:/nowhere',
      POD_NAME: 'operator-0',
      POD_NAMESPACE: namespace,
      KUBECONFIG: kubeconfig,
    },
  });
}

function kubeconfigOf(server: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'chancery-door-')), 'config');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'door', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'nobody', user: {} }],
    contexts: [{ name: 'door', context: { cluster: 'door', user: 'nobody' } }],
    'current-context': 'door',
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

beforeAll(async () => {
  process.on('unhandledRejection', onUnhandled);
  await kubectl('create', 'namespace', namespace);
  await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(root, 'crds'));
  const crds = Object.values(plurals).map((each) => `crd/${each}.chancery.dev`);
  await kubectl('wait', '--for=condition=Established', '--timeout=60s', ...crds);
  api = await openApiServer();
  proxy = await openFaultyProxy(api.url, Math.random);
  const map = installationMap({ ...installationText, baseDomain: 'chancery.example.org' }, namespace);
  // the reports of the members of the registers' set are fixed
  const { status } = setOf(4);
  const main = objectOf('ValidatorSet', 'main', { replicas: 4 }, { 'chancery.dev/paused': 'true' });
  await apply(namespace, map, main);
  await merge('ValidatorSet', 'main', { status }, '/status');
  await apply(namespace, ...all.map(({ kind, name }) => objectOf(kind, name, specs[kind](name, 0))));
  sealing = setInterval(() => ledgers.seal(), 200);
  await startOperator(kubeconfigOf(proxy.url));
  await waitFor(hasConverged, { what: 'convergence', deadlineMs: 60_000, everyMs: 500 });
}, 180_000);

afterAll(async () => {
  clearInterval(sealing);
  process.off('unhandledRejection', onUnhandled);
  await operator?.stop();
  await proxy?.close();
  await api?.stop();
  await run('kubectl', ['delete', 'namespace', namespace, '--wait=false']);
});

test(
  'all edits are carried out soon after the faults end, with a bounded number of calls, and Retry-After is honoured',
  async () => {
    const before = proxy.calls.length;
    await edit(edits, 100);
    await waitFor(hasConverged, { what: 'the edits', deadlineMs: 60_000, everyMs: 200 });
    const nominal = callsSince(before);

    const first = proxy.calls.length;
    proxy.share = share;
    const breaking = setInterval(() => proxy.breakWatch(), 2_000);
    await edit(edits, faultsMs / edits);
    clearInterval(breaking);
    proxy.share = 0;
    const endedAt = performance.now();
    await waitFor(hasConverged, { what: 'convergence', deadlineMs: 60_000, everyMs: 200 });
    const seconds = ((performance.now() - endedAt) / 1_000).toFixed(1);
    const met = [...proxy.faults].map(([fault, count]) => `${count} ${fault}`).join(', ');
    const calls = callsSince(first);
    process.stdout.write(
      `converged ${seconds} s after the faults (${met}); ${calls} calls, ${nominal} without faults, ${losses} leases lost\n`,
    );
    expect([...proxy.faults.keys()].length).toBeGreaterThanOrEqual(5);
    expect(calls).toBeLessThanOrEqual(5 * nominal);
    expect(proxy.early).toEqual([]);
    expect(unhandled).toEqual([]);
    expect(organizations.all()).toHaveLength(names.Tenant.length);
    expect(ledgers.all()).toHaveLength(names.Register.length);
  },
  faultsMs + 240_000,
);
