import { readFileSync } from 'node:fs';
import process from 'node:process';
import { expect, test } from 'vitest';
import { charts } from './chart.ts';
import { run } from './kubectl.ts';

const guard = readFileSync(charts('chancery', 'files/uninstall-guard.js'), 'utf8');

/** A fake API server for `fetch`, with items by path in pages of two, and a fake token file. */
const outside = `
  import fs from 'node:fs';
  import { syncBuiltinESMExports } from 'node:module';
  fs.readFileSync = () => 'token';
  syncBuiltinESMExports();
  const paths = new Map(Object.entries(JSON.parse(process.env.PATHS)));
  globalThis.fetch = async (url) => {
    const { pathname, searchParams } = new URL(url);
    const items = paths.get(pathname);
    if (items === undefined) return new Response('', { status: 404 });
    const from = Number(searchParams.get('continue') ?? 0);
    const next = from + 2 < items.length ? String(from + 2) : '';
    return Response.json({ metadata: { continue: next }, items: items.length === 0 ? null : items.slice(from, from + 2) });
  };
`;

/** Lists of Tenants, per namespace and for all namespaces. */
function tenants(byNamespace: Readonly<Record<string, readonly string[]>>) {
  const kinds = '/apis/chancery.dev/v1alpha1';
  const lists = Object.entries(byNamespace).map(
    ([namespace, names]) =>
      [
        `${kinds}/namespaces/${namespace}/tenants`,
        names.map((name) => ({ metadata: { namespace, name } })),
      ] as const,
  );
  return { ...Object.fromEntries(lists), [`${kinds}/tenants`]: lists.flatMap(([, items]) => items) };
}
const describes = (namespace: string, operatorNamespace?: string) => ({
  metadata: { namespace },
  data: { 'installation.json': JSON.stringify({ operatorNamespace }) },
});
/** The ConfigMap of a ValidatorSet, which has the same label. */
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

test('with scope All it finds objects of the operator in other namespaces, but none of other operators', async () => {
  const paths = {
    '/api/v1/configmaps': [
      describes('acme', 'acme'),
      describes('served', 'acme'),
      describes('other', 'other'),
      describes('own'),
      settings,
    ],
    ...tenants({ served: ['one', 'two'], other: ['foreign'], own: ['foreign'] }),
  };
  const { code, out } = await guardOf('', paths);
  expect(code).toBe(1);
  expect(out).toContain(
    'The operator of acme still manages 2 resources: served/tenants/one, served/tenants/two.',
  );
  expect(out.match(/Delete them first: .*/g)).toEqual([
    'Delete them first: kubectl delete -n served registers,validatorsets,tenants --all',
  ]);
});

test.each([
  ['nothing of it is left', []],
  [
    'only what the operator made is left',
    [{ metadata: { namespace: 'left' }, data: { CHANCERY_LOG_LEVEL: 'info' } }],
  ],
  ['its description is spoilt', [{ metadata: { namespace: 'left' }, data: { 'installation.json': '{' } }]],
  ['it is described twice', [describes('left', 'other'), describes('left', 'third')]],
])('with scope All it finds what is in the namespace of an installation of which %s', async (_, left) => {
  const paths = {
    '/api/v1/configmaps': [describes('acme', 'acme'), ...left, describes('other', 'other')],
    ...tenants({ other: ['a', 'b', 'c'], left: ['one'] }),
  };
  const { code, out } = await guardOf('', paths);
  expect(code).toBe(1);
  expect(out).toContain('The operator of acme still manages 1 resources: left/tenants/one.');
});

test.each([
  [
    'where nothing is left',
    '',
    { '/api/v1/configmaps': [describes('acme', 'acme')], ...tenants({ acme: [] }) },
    'false',
  ],
  ['of what other namespaces than its own hold', 'acme', tenants({ other: ['foreign'] }), 'false'],
  ['where they may be left behind', 'acme', tenants({ acme: ['one'] }), 'true'],
])('says nothing %s', async (_, namespaces, paths, orphan) => {
  const { code, out } = await guardOf(namespaces, paths, orphan);
  expect([code, out]).toEqual([0, '']);
});
