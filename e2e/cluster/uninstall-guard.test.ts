import { readFileSync } from 'node:fs';
import process from 'node:process';
import { expect, test } from 'vitest';
import { charts } from './chart.ts';
import { run } from './kubectl.ts';

const guard = readFileSync(charts('chancery', 'files/uninstall-guard.js'), 'utf8');

/** An API server in the place of `fetch`, with items by path, and a token in the place of the file. */
const outside = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  fs.readFileSync = () => 'token';
  syncBuiltinESMExports();
  const paths = new Map(Object.entries(JSON.parse(process.env.PATHS)));
  globalThis.fetch = async (url) => {
    const items = paths.get(new URL(url).pathname);
    return items === undefined ? new Response('', { status: 404 }) : Response.json({ items });
  };
`;

const tenantsIn = (namespace: string, ...names: readonly string[]) => ({
  [`/apis/chancery.dev/v1alpha1/namespaces/${namespace}/tenants`]: names.map((name) => ({
    metadata: { name },
  })),
});
const describes = (namespace: string, operatorNamespace: string) => ({
  metadata: { namespace },
  data: { 'installation.json': JSON.stringify({ operatorNamespace }) },
});
/** Of a ValidatorSet: it has the label too. */
const settings = { metadata: { namespace: 'idle' }, data: { CHANCERY_LOG_LEVEL: 'info' } };

function guardOf(namespaces: string, paths: object, orphan = 'false') {
  const env = {
    PATHS: JSON.stringify(paths),
    KUBERNETES_SERVICE_HOST: '10.96.0.1',
    KUBERNETES_SERVICE_PORT: '443',
    NAMESPACE: 'acme',
    NAMESPACES: namespaces,
    RELEASE: 'acme',
    ORPHAN: orphan,
  };
  const source = JSON.stringify(`data:text/javascript,${encodeURIComponent(guard)}`);
  const script = `${outside}await import(${source});`;
  return run(process.execPath, ['--input-type=module', '-e', script], { env });
}

test('with scope All it finds what the operator looks after in other namespaces, and nothing of other operators', async () => {
  const paths = {
    '/api/v1/configmaps': [
      describes('acme', 'acme'),
      describes('served', 'acme'),
      describes('other', 'other'),
      settings,
    ],
    ...tenantsIn('served', 'one', 'two'),
    ...tenantsIn('other', 'foreign'),
  };
  const { code, out } = await guardOf('', paths);
  expect(code).toBe(1);
  expect(out).toContain(
    'The operator of acme still looks after 2 resources: served/tenants/one, served/tenants/two.',
  );
  expect(out.match(/Delete them first: .*/g)).toEqual([
    'Delete them first: kubectl delete -n served registers,validatorsets,tenants --all',
  ]);
});

test.each([
  [
    'where nothing is left',
    '',
    { '/api/v1/configmaps': [describes('acme', 'acme')], ...tenantsIn('acme') },
    'false',
  ],
  ['of what other namespaces than its own hold', 'acme', tenantsIn('other', 'foreign'), 'false'],
  ['where they may be left behind', 'acme', tenantsIn('acme', 'one'), 'true'],
])('says nothing %s', async (_, namespaces, paths, orphan) => {
  const { code, out } = await guardOf(namespaces, paths, orphan);
  expect([code, out]).toEqual([0, '']);
});
