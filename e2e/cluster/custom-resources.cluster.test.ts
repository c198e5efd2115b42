import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiServer, eventually, kubectl, openApiServer, run } from './kubectl.ts';

const root = join(fileURLToPath(import.meta.url), '../../..');
const namespace = `chancery-kinds-${process.pid}`;
const apiVersion = 'chancery.dev/v1alpha1';
const path = `/apis/${apiVersion}/namespaces/${namespace}`;

let api: ApiServer;

beforeAll(async () => {
  await kubectl('create', 'namespace', namespace);
  await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(root, 'crds'));
  const names = ['registers', 'tenants', 'validatorsets'].map((each) => `crd/${each}.chancery.dev`);
  await kubectl('wait', '--for=condition=Established', '--timeout=60s', ...names);
  api = await openApiServer();
  await eventually(() => kubectl('get', 'chancery', '-n', namespace));
});

afterAll(async () => {
  await api?.stop();
  await kubectl('delete', 'namespace', namespace, '--wait=false');
});

test('kubectl explain describes the kinds', async () => {
  const explain = async (of: string) => (await kubectl('explain', of)).replaceAll(/\s+/g, ' ');
  const policy = await explain('register.spec.policy');
  for (const member of ['governance', 'validators', 'consensus', 'leaderElection'])
    expect(policy).toContain(member);
  const interval = await explain('reg.spec.policy.consensus.docketBuildIntervalMs');
  expect(interval).toContain('Longest time in milliseconds that transactions are collected');
  expect(await explain('vset.spec.replicas')).toContain('members are added and removed one at a time');
  expect(await explain('tenant.spec.deletionPolicy')).toContain('Suspend');
});

test('the samples are accepted and listed together with their columns', async () => {
  await kubectl('apply', '-n', namespace, '-f', join(root, 'charts/chancery/samples'));
  const all = await kubectl('get', 'chancery', '-n', namespace);
  for (const name of [
    'register.chancery.dev/invoices',
    'tenant.chancery.dev/acme',
    'validatorset.chancery.dev/main',
  ]) {
    expect(all).toContain(name);
  }
  const columns = async (short: string, ...more: string[]) =>
    (await kubectl('get', short, '-n', namespace, ...more))
      .split('\n')[0]
      ?.trim()
      .split(/\s{2,}/);
  expect(await columns('vset')).toEqual([
    'NAME',
    'DESIRED',
    'READY',
    'UPDATED',
    'QUORUM',
    'TOLERATES',
    'VERSION',
    'READY-STATUS',
    'AGE',
  ]);
  expect(await columns('reg')).toEqual([
    'NAME',
    'PHASE',
    'HEIGHT',
    'VALIDATORS',
    'POLICY',
    'SYNC',
    'READY',
    'AGE',
  ]);
  expect(await columns('ten', '-o', 'wide')).toEqual([
    'NAME',
    'STATE',
    'SUBDOMAIN',
    'USERS',
    'REGISTERS',
    'READY',
    'AGE',
    'ORGANIZATIONID',
    'REASON',
    'PAUSED',
  ]);
});

test('columns show the status, which only the subresource changes', async () => {
  await kubectl('annotate', '-n', namespace, 'ten/acme', 'chancery.dev/paused=true', '--overwrite');
  const status = {
    state: 'Active',
    userCount: 3,
    organizationId: 'o-1',
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'Reconciled',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  };
  const patch = JSON.stringify({ status });
  await kubectl('patch', '-n', namespace, 'ten/acme', '--type=merge', '-p', patch);
  expect(await kubectl('get', 'ten/acme', '-n', namespace)).not.toContain('Active');
  await kubectl('patch', '-n', namespace, 'ten/acme', '--subresource=status', '--type=merge', '-p', patch);
  const shown = await kubectl('get', 'ten/acme', '-n', namespace, '-o', 'wide', '--no-headers');
  expect(shown.trim().split(/\s+/)).toEqual(
    expect.arrayContaining(['acme', 'Active', '3', 'True', 'o-1', 'Reconciled', 'true']),
  );
  await kubectl('wait', '-n', namespace, 'ten/acme', '--for=condition=Ready', '--timeout=10s');
  await kubectl('annotate', '-n', namespace, 'ten/acme', 'chancery.dev/paused-');
});

test('a ValidatorSet scales', async () => {
  await kubectl('scale', '-n', namespace, 'vset/main', '--replicas=7');
  const replicas = await kubectl('get', 'vset/main', '-n', namespace, '-o', 'jsonpath={.spec.replicas}');
  expect(replicas).toBe('7');
  const over = await run('kubectl', ['scale', '-n', namespace, 'vset/main', '--replicas=101']);
  expect(over.err).toContain('less than or equal to 100');
});

test('registers can be selected by tenant and by validator set', async () => {
  const find = (selector: string) =>
    kubectl('get', 'reg', '-n', namespace, '--field-selector', selector, '-o', 'name');
  expect(await find('spec.tenantRef.name=acme,spec.validatorSetRef.name=main')).toContain('invoices');
  expect(await find('spec.tenantRef.name=other')).toBe('');
});

test('conditions of two field managers are merged', async () => {
  const condition = (type: string) => ({
    apiVersion,
    kind: 'Register',
    metadata: { name: 'invoices', namespace },
    status: {
      conditions: [
        {
          type,
          status: 'True',
          reason: 'Reconciled',
          message: '',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    },
  });
  for (const [manager, type] of [
    ['chancery-register-status', 'Ready'],
    ['someone-else', 'Zebra'],
  ] as const) {
    const target = `${path}/registers/invoices/status?fieldManager=${manager}&force=true`;
    const answer = await api.request('PATCH', target, condition(type), 'application/apply-patch+yaml');
    expect(answer.status, JSON.stringify(answer.body)).toBe(200);
  }
  const types = await kubectl(
    'get',
    'reg/invoices',
    '-n',
    namespace,
    '-o',
    'jsonpath={.status.conditions[*].type}',
  );
  expect(types.split(' ').sort()).toEqual(['Ready', 'Zebra']);
});

test('kubectl shows the reason and the remedy of a refusal', async () => {
  const text = JSON.stringify({
    apiVersion,
    kind: 'Tenant',
    metadata: { name: 'bad', namespace },
    spec: { displayName: 'Acme', subdomain: 'admin' },
  });
  const { code, err } = await run('kubectl', ['apply', '-f', '-'], text);
  expect(code).toBe(1);
  expect(err).toContain('spec.subdomain');
  expect(err).toContain('the platform uses this subdomain itself; choose another one');
});
