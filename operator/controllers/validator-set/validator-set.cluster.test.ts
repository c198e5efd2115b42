import { join } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Component, start } from '#kit/lifecycle/lifecycle.ts';
import { createLogger } from '#kit/log/log.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { kubectl, run } from '../../../e2e/cluster/kubectl.ts';
import { createOperator } from '../../compose.ts';
import { operatorSettings } from '../../config.ts';
import { FakeMembers } from '../../platform/testing/fake-members.ts';
import { installationMap, installationText } from '../../platform/testing/installation.fixture.ts';
import { createValidatorSetController } from './controller.ts';

/** The operator as a local process with a real cluster; the members are fakes. */

const root = join(fileURLToPath(import.meta.url), '../../../..');
const namespace = `chancery-vset-${process.pid}`;
const members = new FakeMembers();
let operator: Component;

const apply = (object: object) =>
  run('kubectl', ['apply', '-n', namespace, '-f', '-'], JSON.stringify(object));
const get = async (...what: string[]) =>
  JSON.parse(await kubectl('get', '-n', namespace, ...what, '-o', 'json'));
const set = (spec: object, name = 'main') => ({
  apiVersion: 'chancery.dev/v1alpha1',
  kind: 'ValidatorSet',
  metadata: { name, namespace },
  spec,
});
const ready = async (name = 'main') => {
  const { status = {} } = await get('vset', name);
  const conditions: readonly { type: string; status: string; reason: string; message: string }[] =
    status.conditions;
  return conditions?.find(({ type }) => type === 'Ready');
};
const within = <T>(what: string, deadlineMs: number, check: () => Promise<T>) =>
  waitFor(check, { what, deadlineMs, everyMs: 100 });

/** The part of the PodMonitor kind that this operator uses. */
const podMonitorKind = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'podmonitors.monitoring.coreos.com' },
  spec: {
    group: 'monitoring.coreos.com',
    names: { kind: 'PodMonitor', listKind: 'PodMonitorList', plural: 'podmonitors', singular: 'podmonitor' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
          },
        },
      },
    ],
  },
};

beforeAll(async () => {
  await kubectl('create', 'namespace', namespace);
  expect((await apply(podMonitorKind)).err).toBe('');
  await kubectl('label', 'namespace', namespace, 'pod-security.kubernetes.io/enforce=restricted');
  await kubectl('apply', '--server-side', '--force-conflicts', '-f', join(root, 'crds'));
  await kubectl(
    'wait',
    '--for=condition=Established',
    '--timeout=60s',
    'crd/validatorsets.chancery.dev',
    'crd/registers.chancery.dev',
    'crd/tenants.chancery.dev',
    'crd/podmonitors.monitoring.coreos.com',
  );
  operator = await start({
    service: 'operator',
    schema: operatorSettings,
    log: createLogger({ service: 'operator', level: 'warn' }),
    create: createOperator(
      (dependencies) => [createValidatorSetController({ dependencies, members, principals: members })],
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
});

afterAll(async () => {
  await operator?.stop();
  await run('kubectl', ['delete', 'namespace', namespace, '--wait=false']);
  await run('kubectl', ['delete', 'crd', podMonitorKind.metadata.name]);
});

test('without an installation nothing is created and the condition gives the reason', async () => {
  await apply(set({ replicas: 4 }));
  const condition = await within('the condition', 30_000, async () => (await ready()) ?? false);
  expect(condition).toMatchObject({ status: 'False', reason: 'InstallationConfigInvalid' });
  expect((await get('statefulsets')).items).toEqual([]);
});

test('a set gets its children, and its pods pass restricted pod security', async () => {
  // without a pod address the members cannot be queried
  for (const name of ['chancery-identity-ca', 'chancery-nats-ca']) {
    await kubectl('create', 'configmap', name, '-n', namespace, '--from-literal=ca.crt=none');
  }
  await apply(installationMap(installationText, namespace));
  await within('pods', 30_000, async () => (await get('pods')).items.length === 4);
  const kinds = [
    'serviceaccount/validator-main',
    'configmap/main-config',
    'service/main',
    'service/main-members',
  ];
  const more = ['statefulset/main', 'poddisruptionbudget/main', 'networkpolicy/main', 'podmonitor/main'];
  await kubectl('get', '-n', namespace, ...kinds, ...more);
  expect(members.principals).toEqual(new Set([0, 1, 2, 3].map((each) => `validator-main-${each}`)));
  expect(await ready()).toMatchObject({ status: 'False', reason: 'WaitingForPods' });
});

describe('after a manual change', () => {
  const children = [
    'service/main',
    'service/main-members',
    'configmap/main-config',
    'pdb/main',
    'networkpolicy/main',
    'podmonitor/main',
    'statefulset/main',
    'serviceaccount/validator-main',
  ];
  test.each(children)('%s is created again after a deletion', async (child) => {
    const { metadata } = await get(child);
    // pods stay; the garbage collector, which orphans them, discovers a new kind only after half a minute
    const cascade = child === 'statefulset/main' ? 'orphan' : 'background';
    await kubectl('delete', '-n', namespace, child, `--cascade=${cascade}`, '--wait=false');
    await within(`${child} to come back`, 10_000, async () => {
      const { code, out } = await run('kubectl', ['get', '-n', namespace, child, '-o', 'json']);
      return code === 0 && JSON.parse(out).metadata.uid !== metadata.uid;
    });
  });

  test('fields of the operator are restored, and others stay', async () => {
    const patch = {
      metadata: { annotations: { 'example.org/mine': 'yes' } },
      spec: { ports: [{ name: 'grpc', port: 6000 }] },
    };
    await kubectl(
      'patch',
      '-n',
      namespace,
      'service/main',
      '--type=merge',
      '-p',
      JSON.stringify({ ...patch, spec: { sessionAffinity: 'ClientIP', selector: { app: 'other' } } }),
    );
    await within('the selector', 5_000, async () => {
      const { spec } = await get('service/main');
      return spec.selector['chancery.dev/validator-set'] === 'main';
    });
    const { metadata, spec } = await get('service/main');
    expect(metadata.annotations['example.org/mine']).toBe('yes');
    expect(spec.sessionAffinity).toBe('ClientIP');
  });
});

test('kubectl scale adds members at once and removes them one by one', async () => {
  await kubectl('scale', '-n', namespace, 'vset/main', '--replicas=5');
  await within('the fifth to answer', 60_000, async () => {
    const { status } = await get('vset/main');
    return status.members[4]?.phase === 'KeyReady';
  });
  members.registers.set('0'.repeat(32), {
    members: [0, 1, 2, 3, 4].map((each) => `validator-main-${each}`),
    height: 3,
  });
  await kubectl('scale', '-n', namespace, 'vset/main', '--replicas=4');
  await within('the removal to wait', 20_000, async () =>
    (await ready())?.message.startsWith('main-4 is being removed'),
  );
  expect((await get('statefulset/main')).spec.replicas).toBe(5);
  members.registers.set('0'.repeat(32), {
    members: [0, 1, 2, 3].map((each) => `validator-main-${each}`),
    height: 4,
  });
  await within('four pods', 60_000, async () => (await get('pods')).items.length === 4);
});

test('volumes are expanded: claims first, then the StatefulSet is recreated around its pods', async () => {
  const before = (await get('pods')).items
    .map((each: { metadata: { uid: string } }) => each.metadata.uid)
    .sort();
  await kubectl(
    'patch',
    '-n',
    namespace,
    'vset/main',
    '--type=merge',
    '-p',
    '{"spec":{"storage":{"size":"2Gi"},"update":{"strategy":"OnDelete"}}}',
  );
  await within('the template', 30_000, async () => {
    const { spec } = await get('statefulset/main');
    return spec.volumeClaimTemplates[0].spec.resources.requests.storage === '2Gi';
  });
  const claims = (await get('pvc')).items as { spec: { resources: { requests: { storage: string } } } }[];
  expect(claims.slice(0, 4).map(({ spec }) => spec.resources.requests.storage)).toEqual([
    '2Gi',
    '2Gi',
    '2Gi',
    '2Gi',
  ]);
  const after = (await get('pods')).items
    .map((each: { metadata: { uid: string } }) => each.metadata.uid)
    .sort();
  expect(after).toEqual(before);
});

test('a suspended set stops, keeps its volumes and can be resumed', async () => {
  const claims = (await get('pvc')).items.length;
  await kubectl('patch', '-n', namespace, 'vset/main', '--type=merge', '-p', '{"spec":{"suspend":true}}');
  await within('no pods', 60_000, async () => (await get('pods')).items.length === 0);
  await within('the condition', 10_000, async () => (await ready())?.reason === 'Suspended');
  expect((await get('pvc')).items.length).toBe(claims);
  await kubectl('patch', '-n', namespace, 'vset/main', '--type=merge', '-p', '{"spec":{"suspend":false}}');
  await within('pods', 30_000, async () => (await get('pods')).items.length === 4);
});

test('a paused set is not changed', async () => {
  await kubectl('annotate', '-n', namespace, 'vset/main', 'chancery.dev/paused=true');
  await within('the condition', 10_000, async () => (await ready())?.reason === 'Paused');
  await kubectl('delete', '-n', namespace, 'configmap/main-config');
  await kubectl('annotate', '-n', namespace, 'vset/main', 'chancery.dev/paused-');
  await within(
    'the ConfigMap',
    10_000,
    async () => (await run('kubectl', ['get', '-n', namespace, 'configmap/main-config'])).code === 0,
  );
});

test('a set stays while a Register refers to it, and is deleted with everything except its volumes', async () => {
  const owner = {
    apiVersion: 'chancery.dev/v1alpha1',
    kind: 'Register',
    metadata: { name: 'ledger', namespace },
  };
  const made = await apply({
    ...owner,
    spec: { title: 'Ledger', tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } },
  });
  expect(made.err).toBe('');
  await kubectl('delete', '-n', namespace, 'vset/main', '--wait=false');
  await within('the condition', 10_000, async () => (await ready())?.reason === 'InUse');
  expect((await ready())?.message).toContain('ledger');
  await kubectl('delete', '-n', namespace, 'register/ledger');
  await within(
    'the set to go',
    30_000,
    async () => (await run('kubectl', ['get', '-n', namespace, 'vset/main'])).code !== 0,
  );
  await within('the pods to go', 60_000, async () => (await get('pods')).items.length === 0);
  expect((await get('pvc')).items.length).toBeGreaterThan(0);
});
