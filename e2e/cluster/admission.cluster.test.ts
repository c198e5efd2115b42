import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { as, eventually, kubectl, run } from './kubectl.ts';

const root = join(fileURLToPath(import.meta.url), '../../..');
const namespace = `chancery-admission-${process.pid}`;
const designer = as('designer', 'system:authenticated');
const registrar = as('registrar', 'system:authenticated', 'chancery.dev:system-registers');

const systemRegister = (name: string) =>
  JSON.stringify({
    apiVersion: 'chancery.dev/v1alpha1',
    kind: 'Register',
    metadata: { name, namespace },
    spec: { title: 'System', purpose: 'System', validatorSetRef: { name: 'main' } },
  });

const inNamespace = ['-n', namespace];

/** RBAC that allows both users everything on the kinds except what the policies require. */
const role = JSON.stringify({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'Role',
  metadata: { name: 'designer', namespace },
  rules: [
    {
      apiGroups: ['chancery.dev'],
      resources: ['registers', 'tenants', 'validatorsets'],
      verbs: ['get', 'list', 'create', 'update', 'patch', 'delete'],
    },
  ],
});

beforeAll(async () => {
  await kubectl('create', 'namespace', namespace);
  await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(root, 'crds'));
  await kubectl('wait', '--for=condition=Established', '--timeout=60s', 'crd/registers.chancery.dev');
  await run('kubectl', ['apply', '-f', '-'], role);
  await kubectl(
    'create',
    'rolebinding',
    'designer',
    ...inNamespace,
    '--role=designer',
    '--user=designer',
    '--user=registrar',
  );
  // policies are enforced a moment after they are stored
  await eventually(async () => {
    const args = ['create', '--dry-run=server', '-f', '-', ...designer];
    expect((await run('kubectl', args, systemRegister('probe'))).err).toContain('spec.purpose');
  });
  await kubectl('apply', ...inNamespace, '-f', join(root, 'charts/chancery/samples'));
});

afterAll(async () => {
  await kubectl('delete', 'namespace', namespace, '--wait=false');
});

test('the API server type-checks the policies without warnings', async () => {
  await eventually(async () => {
    const { items } = JSON.parse(await kubectl('get', 'validatingadmissionpolicies', '-o', 'json')) as {
      items: {
        metadata: { name: string; generation: number };
        status?: { observedGeneration?: number; typeChecking?: object };
      }[];
    };
    const ours = items.filter(({ metadata }) => metadata.name.endsWith('.chancery.dev'));
    expect(ours).toHaveLength(4);
    for (const { metadata, status } of ours) {
      expect(status?.observedGeneration, metadata.name).toBe(metadata.generation);
      expect(status?.typeChecking, metadata.name).toEqual({});
    }
  });
});

describe('a System register', () => {
  test('is created and deleted by the named group only', async () => {
    const refused = await run('kubectl', ['create', '-f', '-', ...designer], systemRegister('system'));
    expect(refused.err).toContain('write purpose: General or ask one of them');
    const made = await run('kubectl', ['create', '-f', '-', ...registrar], systemRegister('system'));
    expect(made.code, made.err).toBe(0);
    const kept = await run('kubectl', ['delete', 'reg/system', ...inNamespace, ...designer]);
    expect(kept.err).toContain('only the groups');
    await kubectl('delete', 'reg/system', ...inNamespace, ...registrar);
  });

  test('is deleted with its namespace', async () => {
    const other = `${namespace}-gone`;
    await kubectl('create', 'namespace', other);
    const text = systemRegister('system').replace(namespace, other);
    expect((await run('kubectl', ['create', '-f', '-'], text)).code).toBe(0);
    await kubectl('delete', 'namespace', other, '--timeout=60s');
  });

  test('does not restrict ordinary registers', async () => {
    const text = systemRegister('plain').replace('"purpose":"System"', '"tenantRef":{"name":"acme"}');
    expect((await run('kubectl', ['create', '-f', '-', ...designer], text)).code).toBe(0);
    await kubectl('delete', 'reg/plain', ...inNamespace, ...designer);
  });
});

describe('the version of a ValidatorSet', () => {
  const set = (version: string | null) =>
    run('kubectl', [
      'patch',
      'vset/main',
      ...inNamespace,
      '--type=merge',
      '-p',
      JSON.stringify({ spec: { version } }),
      ...designer,
    ]);

  test('cannot be below the running one without the annotation', async () => {
    const status = JSON.stringify({ status: { version: '1.10.0' } });
    await kubectl('patch', 'vset/main', ...inNamespace, '--subresource=status', '--type=merge', '-p', status);
    for (const version of ['1.9.9', '1.10.0-rc.1', '0.99.99']) {
      expect((await set(version)).err, version).toContain('chancery.dev/allow-downgrade: "true"');
    }
    for (const version of ['1.10.0', '1.10.1', '1.11.0-rc.1', '2.0.0', null]) {
      const { code, err } = await set(version);
      expect(code, `${version}: ${err}`).toBe(0);
    }
    await kubectl('annotate', 'vset/main', ...inNamespace, 'chancery.dev/allow-downgrade=true');
    expect((await set('1.9.9')).code).toBe(0);
    await kubectl('annotate', 'vset/main', ...inNamespace, 'chancery.dev/allow-downgrade-');
    // an existing version is not judged again when something else changes
    await kubectl('scale', 'vset/main', ...inNamespace, '--replicas=5');
  });
});

describe('the cleanup of an object', () => {
  test('is skipped only by users with the verb force-delete', async () => {
    const annotate = ['annotate', 'ten/acme', ...inNamespace, 'chancery.dev/force-delete=some-uid'];
    expect((await run('kubectl', [...annotate, ...designer])).err).toContain(
      'needs the RBAC verb force-delete',
    );
    await kubectl(...annotate);
    // other users may still edit other members
    await kubectl('annotate', 'ten/acme', ...inNamespace, 'example.org/note=x', ...designer);
    await kubectl('annotate', 'ten/acme', ...inNamespace, 'chancery.dev/force-delete-', ...designer);
  });

  test('is not skipped by removing the finalizer', async () => {
    const finalizers = (list: readonly string[]) => [
      'patch',
      'reg/invoices',
      ...inNamespace,
      '--type=merge',
      '-p',
      JSON.stringify({ metadata: { finalizers: list } }),
    ];
    await kubectl(...finalizers(['chancery.dev/cleanup', 'example.org/mine']));
    const { err } = await run('kubectl', [...finalizers(['example.org/mine']), ...designer]);
    expect(err).toContain('annotate chancery.dev/force-delete: <metadata.uid>');
    await kubectl(...finalizers(['chancery.dev/cleanup']), ...designer);
    // the operator may remove it: like an administrator it has update on registers/finalizers
    await kubectl(...finalizers([]));
    // with the force-delete annotation every user may, because the operator may be gone
    await kubectl(...finalizers(['chancery.dev/cleanup']));
    const force = (value: string) =>
      kubectl(
        'annotate',
        '--overwrite',
        'reg/invoices',
        ...inNamespace,
        `chancery.dev/force-delete=${value}`,
      );
    await force('another-uid');
    const refused = await run('kubectl', [...finalizers([]), ...designer]);
    expect(refused.err).toContain('annotate chancery.dev/force-delete: <metadata.uid>');
    await force(await kubectl('get', 'reg/invoices', ...inNamespace, '-o', 'jsonpath={.metadata.uid}'));
    await kubectl(...finalizers([]), ...designer);
    await kubectl('annotate', 'reg/invoices', ...inNamespace, 'chancery.dev/force-delete-');
  });
});

describe('the chart of the CRDs', () => {
  const chart = join(root, 'charts/chancery-crds');

  test('passes lint, and the API server accepts its objects', async () => {
    const first = await run('helm', ['lint', '--strict', chart]);
    expect(first.code, first.out + first.err).toBe(0);
    const shown = await run('helm', [
      'template',
      'x',
      chart,
      '--set',
      'systemRegisterGroups={platform:registrars}',
    ]);
    expect(shown.code, shown.err).toBe(0);
    expect(shown.out).toContain('["platform:registrars"]');
    expect(shown.out.match(/helm\.sh\/resource-policy: keep/g)).toHaveLength(3);
    const checked = await run(
      'kubectl',
      ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '-f', '-'],
      shown.out,
    );
    expect(checked.code, checked.err).toBe(0);
  });

  test('adopts existing kinds, and keeps them and their objects when it is uninstalled', async () => {
    const over = ['--take-ownership', '--force-conflicts'];
    const made = await run('helm', ['install', 'chancery-crds', chart, ...inNamespace, ...over]);
    expect(made.code, made.err).toBe(0);
    const gone = await run('helm', ['uninstall', 'chancery-crds', ...inNamespace]);
    expect(gone.code, gone.err).toBe(0);
    expect(await kubectl('get', 'chancery', ...inNamespace, '-o', 'name')).toContain(
      'register.chancery.dev/invoices',
    );
    await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(root, 'crds'));
  });

  test('refuses groups that are not plain texts in the policy', async () => {
    const { code, err } = await run('helm', ['template', 'x', chart, '--set', "systemRegisterGroups={a'b}"]);
    expect(code).not.toBe(0);
    expect(err).toContain('systemRegisterGroups');
  });
});
