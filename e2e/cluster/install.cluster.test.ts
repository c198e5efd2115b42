import { beforeAll, expect, test } from 'vitest';
import { helmInstall, install, installKinds, removeNamespace } from './chart.ts';
import { explainFailures } from './diagnosis.ts';
import { installation, namespace, release } from './installed.ts';
import { kubectl, run } from './kubectl.ts';

const bound = 120_000;

beforeAll(async () => {
  await removeNamespace(namespace);
  await installKinds();
}, 240_000);

explainFailures(namespace);

test('the demo values install a working installation', async () => {
  const tookMs = await install(release, bound);
  process.stdout.write(`installed and ready after ${(tookMs / 1_000).toFixed(1)} s\n`);
  expect(tookMs).toBeLessThan(bound);
}, 240_000);

test('every pod has the security level restricted, and mounts an API token only if it calls the API server', async () => {
  const warned = await run('kubectl', [
    'label',
    '--dry-run=server',
    '--overwrite',
    'namespace',
    namespace,
    'pod-security.kubernetes.io/enforce=restricted',
  ]);
  expect([warned.code, warned.err]).toEqual([0, '']);
  const { items } = JSON.parse(await kubectl('get', 'pods', '-n', namespace, '-o', 'json')) as {
    items: {
      metadata: { labels: Record<string, string> };
      spec: { automountServiceAccountToken?: boolean; containers: { securityContext: object }[] };
    }[];
  };
  const names = (of: typeof items) =>
    [...new Set(of.map(({ metadata }) => metadata.labels['app.kubernetes.io/name']))].sort();
  const all = [
    'blueprint',
    'credential',
    'gateway',
    'nats',
    'operator',
    'postgres',
    'register',
    'svid-issuer',
    'tenant',
    'wallet',
  ];
  expect(names(items)).toEqual(all);
  expect(names(items.filter(({ spec }) => spec.automountServiceAccountToken !== false))).toEqual([
    'operator',
    'svid-issuer',
  ]);
  for (const { spec } of items)
    for (const { securityContext } of spec.containers)
      expect(securityContext).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
      });
});

test('an upgrade with the same values restarts nothing and changes no secret', async () => {
  const pods = () =>
    kubectl('get', 'pods', '-n', namespace, '-l', 'app.kubernetes.io/part-of=chancery', '-o', 'name');
  const secrets = () =>
    kubectl(
      'get',
      'secrets',
      '-n',
      namespace,
      '-l',
      'app.kubernetes.io/name=secrets',
      '-o',
      'jsonpath={.items[*].data}',
    );
  const before = [await pods(), await secrets()];
  await install(release, bound);
  expect([await pods(), await secrets()]).toEqual(before);
}, 240_000);

test('a second installation in a namespace is refused', async () => {
  const { code, err } = await helmInstall({ name: 'second', namespace });
  expect(code).not.toBe(0);
  expect(err).toContain(
    `The namespace ${namespace} already has the installation ${installation} (release acme)`,
  );
});

test('the name of an installation cannot be changed', async () => {
  const { code, err } = await helmInstall({ ...release, set: ['installation=other.example'] });
  expect(code).not.toBe(0);
  expect(err).toContain(
    `installation: the name of this release is ${installation} and cannot be changed to other.example`,
  );
});
