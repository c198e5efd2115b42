import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { helmInstall, install, installKinds, type Release, removeNamespace } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { apply, eventually, kubectl } from './kubectl.ts';

/** One operator for the installations of two namespaces, each with its own services, identities and certificates. */

/** Two more installations take minutes, so this is for the long form. */
const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';

const [first, second] = ['one', 'two'].map((name) => `chancery-scope-${name}-${process.pid}`) as [
  string,
  string,
];
const serving: Release = {
  name: 'serving',
  namespace: first,
  set: [
    'ingress.enabled=false',
    'operator.replicas=1',
    'operator.scope=List',
    `operator.namespaces={${first},${second}}`,
  ],
};
const served: Release = {
  name: 'served',
  namespace: second,
  set: ['ingress.enabled=false', `operator.servedFrom=${first}`],
};

const apiVersion = 'chancery.dev/v1alpha1';
const resources = [
  { apiVersion, kind: 'ValidatorSet', metadata: { name: 'main' }, spec: { replicas: 1 } },
  {
    apiVersion,
    kind: 'Tenant',
    metadata: { name: 'acme' },
    spec: { displayName: 'Acme', subdomain: 'acme', deletionPolicy: 'Delete' },
  },
  {
    apiVersion,
    kind: 'Register',
    metadata: { name: 'invoices' },
    spec: { title: 'Invoices', tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } },
  },
];
const all = ['vset/main', 'tenant/acme', 'register/invoices'];

describe.runIf(full)('an operator for two namespaces', () => {
  beforeAll(async () => {
    await installKinds();
    // the roles of the operator exist in both namespaces
    await kubectl('create', 'namespace', second);
    const { code, err } = await helmInstall(serving);
    expect([code, err]).toEqual([0, '']);
    await install(served);
    await install(serving);
  }, 360_000);

  afterAll(async () => {
    await Promise.all([second, first].map(removeNamespace));
  }, 300_000);

  explainFailures(first);
  explainFailures(second);

  test('the operator of the other namespace creates a tenant, validators and a register that they seal', async () => {
    await apply(second, ...resources);
    await kubectl('wait', '-n', second, '--for=condition=Ready', '--timeout=120s', ...all);
    const phase = await kubectl('get', '-n', second, 'register/invoices', '-o', 'jsonpath={.status.phase}');
    expect(phase).toBe('Online');
    const operators = await kubectl(
      'get',
      'pods',
      '-n',
      second,
      '-l',
      'app.kubernetes.io/name=operator',
      '-o',
      'name',
    );
    expect(operators).toBe('');
  }, 180_000);

  test('and deletes them', async () => {
    await kubectl('delete', '-n', second, '--timeout=60s', ...all);
    await eventually(async () => {
      expect(await kubectl('get', 'chancery', '-n', second, '-o', 'name')).toBe('');
    });
  }, 120_000);
});
