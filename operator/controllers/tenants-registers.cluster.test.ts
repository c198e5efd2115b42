import { join } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createLogger } from '#kit/log/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { kubectl, run } from '../../e2e/cluster/kubectl.ts';
import { createOperator } from '../compose.ts';
import { operatorSettings } from '../config.ts';
import { setOf } from '../plan/testing/objects.ts';
import type { Platform } from '../platform/clients.ts';
import { fakeOrganizations } from '../platform/testing/fake-organizations.ts';
import { fakeRegisters } from '../platform/testing/fake-registers.ts';
import { installationMap, installationText } from '../platform/testing/installation.fixture.ts';
import { withInterruptions } from '../platform/testing/interrupted.ts';
import { createReconciler } from './reconciler/reconciler.ts';
import { registerKind } from './register/register.ts';
import { tenantKind } from './tenant/tenant.ts';

/** The operator as a local process with a real API server; the services are fakes. */

const root = join(fileURLToPath(import.meta.url), '../../..');
const namespace = `chancery-ledgers-${process.pid}`;
const organizations = fakeOrganizations();
const ledgers = fakeRegisters();
let attempts = 0;
let operator: Component;
let sealing: NodeJS.Timeout;

function count(call: string): undefined {
  if (call === 'find') attempts += 1;
}

const platform: Platform = {
  of: async () => ({
    organizations: withInterruptions(organizations, count),
    registers: withInterruptions(ledgers, count),
    wallets: ledgers,
  }),
  stop: () => undefined,
};

const apply = (object: object) =>
  run('kubectl', ['apply', '-n', namespace, '-f', '-'], JSON.stringify(object));
const get = async (...what: string[]) =>
  JSON.parse(await kubectl('get', '-n', namespace, ...what, '-o', 'json'));
const object = (kind: string, name: string, spec: object) => ({
  apiVersion: 'chancery.dev/v1alpha1',
  kind,
  metadata: { name, namespace },
  spec,
});
const ready = (what: string, seconds = 30) =>
  kubectl('wait', '-n', namespace, '--for=condition=Ready', `--timeout=${seconds}s`, what);
const within = <T>(what: string, check: () => Promise<T>) =>
  waitFor(check, { what, deadlineMs: 30_000, everyMs: 100 });

const tenant = (over: object = {}) =>
  object('Tenant', 'acme', { displayName: 'Acme', subdomain: 'acme', ...over });
const register = (over: object = {}) =>
  object('Register', 'invoices', {
    title: 'Invoices',
    tenantRef: { name: 'acme' },
    validatorSetRef: { name: 'main' },
    ...over,
  });

beforeAll(async () => {
  await kubectl('create', 'namespace', namespace);
  await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(root, 'crds'));
  const crds = ['validatorsets', 'registers', 'tenants'].map((each) => `crd/${each}.chancery.dev`);
  await kubectl('wait', '--for=condition=Established', '--timeout=60s', ...crds);
  const map = { ...installationText, baseDomain: 'chancery.example.org' };
  await apply(installationMap(map, namespace));
  operator = await start({
    service: 'operator',
    schema: operatorSettings,
    log: createLogger({ service: 'operator', level: 'warn' }),
    create: createOperator(
      (dependencies) => [
        createReconciler(dependencies, tenantKind(dependencies, platform)),
        createReconciler(dependencies, registerKind(dependencies, platform)),
      ],
      () => undefined,
    ),
    env: {
      CHANCERY_INSTALLATION: installationText.installation,
      CHANCERY_LISTEN_HOST: '127.0.0.1',
      CHANCERY_OPS_PORT: '0',
      SPIFFE_ENDPOINT_SOCKET: 'unix:/nowhere',
      POD_NAME: 'operator-0',
      POD_NAMESPACE: namespace,
      KUBECONFIG: env['KUBECONFIG'],
    },
  });
  sealing = setInterval(() => ledgers.seal(), 200);
});

afterAll(async () => {
  clearInterval(sealing);
  await operator?.stop();
  await run('kubectl', ['delete', 'namespace', namespace, '--wait=false']);
});

test('a tenant becomes ready with its organisation and its Ingress', async () => {
  await apply(tenant());
  await ready('tenant/acme');
  const { status } = await get('tenant', 'acme');
  expect(status).toMatchObject({ state: 'Active', organizationId: organizations.all()[0]?.organizationId });
  const { spec } = await get('ingress', 'tenant-acme');
  expect(spec.rules[0].host).toBe('acme.chancery.example.org');
});

test('a register reports its missing dependency and becomes ready with its set', async () => {
  await apply(register());
  await within('the complaint', async () => {
    const { status } = await get('register', 'invoices');
    return JSON.stringify(status ?? {}).includes('ValidatorSet main of spec.validatorSetRef does not exist');
  });
  await apply(object('ValidatorSet', 'main', { replicas: 4 }));
  const { status } = setOf(4);
  const patch = JSON.stringify({ status });
  await kubectl('patch', '-n', namespace, 'vset/main', '--subresource=status', '--type=merge', '-p', patch);
  await ready('register/invoices');
  const found = await get('register', 'invoices');
  expect(found.status).toMatchObject({ phase: 'Online', height: 1, validators: { summary: '4/4' } });
  expect(found.status.conditions.map((each: { type: string }) => each.type)).toEqual([
    'Ready',
    'Degraded',
    'AttestationsComplete',
    'GenesisSealed',
    'QuorumAvailable',
    'Synced',
    'PolicyInSync',
    'DevModeInSync',
  ]);
});

test('printer columns and events are readable', async () => {
  const table = await kubectl('get', '-n', namespace, 'chancery');
  expect(table).toMatch(/PHASE\s+HEIGHT\s+VALIDATORS\s+POLICY\s+SYNC\s+READY/);
  expect(table).toMatch(/invoices\s+Online\s+1\s+4\/4\s+1\s+Synced\s+True/);
  expect(table).toMatch(/acme\s+Active\s+acme\s+0\s+[01]\s+True/);
  const events = await kubectl('get', '-n', namespace, 'events');
  expect(events).toContain('Create register Invoices with 4 validators, quorum 3');
});

test('edits are applied, and a foreign change is reverted', async () => {
  await apply(register({ title: 'Bills', policy: { consensus: { docketBuildIntervalMs: 500 } } }));
  await apply(tenant({ displayName: 'Acme Ltd' }));
  await within('the ledger', async () => {
    const [ledger] = ledgers.all();
    return ledger?.title === 'Bills' && ledger.policyVersion === 2;
  });
  await within('the name', async () => organizations.all()[0]?.name === 'Acme Ltd');
  await ready('register/invoices');
  await kubectl('delete', '-n', namespace, 'ingress/tenant-acme', '--wait=false');
  await within(
    'the address',
    async () => (await run('kubectl', ['get', '-n', namespace, 'ingress/tenant-acme'])).code === 0,
  );
});

test('without changes nothing is written', async () => {
  await ready('tenant/acme');
  const versions = async () =>
    (await get('tenants,registers')).items.map(
      ({ metadata }: { metadata: { resourceVersion: string } }) => metadata.resourceVersion,
    );
  const writes = organizations.writes() + ledgers.writes();
  attempts = 0;
  // the versions returned by the annotation itself, because the operator may reconcile before another read
  const annotate = ['annotate', '-n', namespace, 'tenant/acme', 'register/invoices'];
  const printed = ['-o', 'jsonpath={.metadata.resourceVersion}{"\\n"}'];
  const annotated = await kubectl(...annotate, 'chancery.dev/reconcile-at=now', ...printed);
  const before = annotated.trim().split('\n');
  await within('a reconcile of both', async () => attempts >= 2);
  expect(await versions()).toEqual(before);
  expect(organizations.writes() + ledgers.writes()).toBe(writes);
});

test('deletion follows the deletion policy and removes the objects', async () => {
  await apply(
    register({
      title: 'Bills',
      policy: { consensus: { docketBuildIntervalMs: 500 } },
      deletionPolicy: 'Purge',
    }),
  );
  await kubectl('delete', '-n', namespace, 'register/invoices', 'tenant/acme', '--timeout=30s');
  expect(ledgers.all()).toMatchObject([{ deletion: { policy: 'Purge' } }]);
  expect(organizations.all()).toMatchObject([{ state: 'Suspended' }]);
});
