import { afterAll, beforeAll, expect, test } from 'vitest';
import { install, installKinds, type Release, removeNamespace, uninstall } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, namespace as other } from './installed.ts';
import { apply, eventually, kubectl, run } from './kubectl.ts';
import { dial } from './probe.ts';

/** A second installation, in addition to the shared one. */
const release: Release = {
  name: 'passing',
  namespace: `chancery-passing-${process.pid}`,
  // the first installation uses the address of the ingress controller
  set: ['ingress.host=passing.example', 'operator.replicas=1'],
};
const { namespace } = release;

const tenant = {
  apiVersion: 'chancery.dev/v1alpha1',
  kind: 'Tenant',
  metadata: { name: 'guest' },
  spec: { displayName: 'A guest', subdomain: 'guest', deletionPolicy: 'Delete' },
};

beforeAll(async () => {
  await ensureInstalled();
  await installKinds();
  await install(release);
}, 360_000);

afterAll(() => removeNamespace(namespace), 120_000);

explainFailures(namespace);

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);

test('two installations of a cluster are isolated', async () => {
  const as = (clientId: string) => ({
    namespace,
    name: 'neighbour',
    labels: { 'app.kubernetes.io/part-of': 'chancery', 'chancery.dev/client-id': clientId },
  });
  const own = `service-tenant.${namespace}.svc:7443`;
  const foreign = ['service-tenant', 'service-wallet', 'service-register'].map(
    (name) => `${name}.${other}.svc:7443`,
  );
  const issuers = [`svid-issuer.${namespace}.svc:8443`, `svid-issuer.${other}.svc:8443`] as const;
  const found = await dial(as('service-gateway'), [own, ...foreign, ...issuers]);
  expect(found).toEqual({
    [own]: 'open',
    ...Object.fromEntries(foreign.map((target) => [target, 'silent'])),
    [issuers[0]]: 'open',
    [issuers[1]]: 'silent',
  });
  await apply(namespace, tenant);
  await look('wait', '--for=condition=Ready', '--timeout=60s', 'tenant/guest');
  const managers = await kubectl('get', 'tenants', '-n', other, '-o', 'jsonpath={.items[*].metadata.name}');
  expect(managers).not.toContain('guest');
}, 120_000);

test('uninstalling while resources exist is refused, and nothing is lost', async () => {
  const before = await look('get', 'pods', '-l', 'chancery.dev/client-id', '-o', 'name');
  const { code, err, out } = await uninstall(release);
  expect(code).not.toBe(0);
  expect(`${err}${out}`).toContain(
    `The operator of ${release.name} still manages 1 resources: tenants/guest.`,
  );
  expect(await look('get', 'pods', '-l', 'chancery.dev/client-id', '-o', 'name')).toBe(before);
  expect(await look('get', 'tenant/guest', '-o', 'jsonpath={.metadata.deletionTimestamp}')).toBe('');
}, 150_000);

test('in the documented order it is complete within two minutes; objects with data stay', async () => {
  const startedAt = performance.now();
  await look('delete', 'registers,validatorsets,tenants', '--all', '--timeout=60s');
  const { code, err } = await uninstall(release);
  expect([
    code,
    err.replaceAll(/.*kept due to the resource policy.*|.*\[(?:Secret|ConfigMap)\].*|\s/g, ''),
  ]).toEqual([0, '']);
  expect(performance.now() - startedAt).toBeLessThan(120_000);
  await eventually(async () => {
    const left = await look('get', 'all,ingresses,networkpolicies,roles,rolebindings', '-o', 'name');
    expect(left).toBe('');
  });
  const secrets = await look('get', 'secrets', '-o', 'jsonpath={.items[*].metadata.name}');
  expect(
    secrets
      .split(' ')
      .filter((name) => name.startsWith('chancery'))
      .sort(),
  ).toEqual(['chancery-generated', 'chancery-identity-authority']);
  expect(await look('get', 'pvc', '-o', 'name')).toContain('data-postgres-0');
  const cluster = await run('kubectl', ['get', 'clusterroles', '-o', 'name']);
  expect(cluster.out).not.toContain(namespace);
}, 200_000);
