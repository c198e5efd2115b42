import { describe, expect, test } from 'vitest';
import { toYaml } from '../../../api/yaml.ts';
import {
  installationText,
  spireText,
  testInstallation,
} from '../../../platform/testing/installation.fixture.ts';
import { makeSet } from '../testing/sets.ts';
import { renderValidatorSet } from './children.ts';
import type { RenderInput } from './input.ts';
import { podMonitor } from './monitor.ts';
import { networkPolicySpec } from './network.ts';
import { imageOf, podTemplate } from './pod.ts';

function input(
  spec: object = {},
  text: object = installationText,
  more: Partial<RenderInput> = {},
): RenderInput {
  const set = makeSet(spec);
  const { size: claimSize } = set.spec.storage;
  return {
    set,
    installation: testInstallation(text),
    replicas: set.spec.replicas,
    faultTolerance: 1,
    claimSize,
    ...more,
  };
}

/** A spec with every member that shapes pods. */
const everyPodField = {
  replicas: 7,
  version: '1.4.0',
  mempool: { maxPerRegister: 500, maxBytesPerRegister: '1Mi', maxBytesTotal: '8Mi' },
  storage: { size: '1536Mi', storageClassName: 'fast' },
  service: { port: 5001 },
  resources: { requests: { cpu: '0.5', memory: '1024Mi' }, limits: { cpu: '2000m' } },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'ledger', operator: 'Exists', effect: 'NoSchedule' }],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] }],
      },
    },
  },
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' },
  ],
  priorityClassName: 'ledger',
  podLabels: { team: 'ledger' },
  podAnnotations: { 'example.org/scrape': 'yes' },
};
const settings = {
  ...installationText,
  images: { ...installationText.images, pullPolicy: 'Always', pullSecrets: ['regcred'] },
  validators: { logLevel: 'debug', tracingEndpoint: 'http://otel:4318' },
  networkPolicies: { metricsNamespaces: ['monitoring'] },
};

const cases: readonly (readonly [string, RenderInput])[] = [
  ['service-account', input()],
  ['spire', input({}, spireText)],
  ['single', input({ replicas: 1 }, installationText, { faultTolerance: 0 })],
  ['suspended', input({ suspend: true }, installationText, { replicas: 0 })],
  ['everything-set', input(everyPodField, settings, { faultTolerance: 2 })],
  ['without-network-policies', input({}, { ...installationText, networkPolicies: { enabled: false } })],
];

describe('children', () => {
  test.each(cases)('%s', async (name, of) => {
    const objects = renderValidatorSet(of).map(({ object }) => toYaml(object));
    await expect(objects.join('---\n')).toMatchFileSnapshot(`golden/${name}.yaml`);
  });
});

test('the PodMonitor has the labels by which Prometheus selects it', async () => {
  const text = {
    ...installationText,
    metrics: { podMonitor: { interval: '15s', labels: { release: 'p8s' } } },
  };
  const objects = podMonitor(input({}, text)).map(({ object }) => toYaml(object));
  await expect(objects.join('---\n')).toMatchFileSnapshot('golden/pod-monitor.yaml');
  expect(podMonitor(input({}, { ...installationText, metrics: { podMonitor: { enabled: false } } }))).toEqual(
    [],
  );
});

test('an operator of another namespace may call the members', () => {
  const [first, ...others] = networkPolicySpec(
    input({}, { ...installationText, operatorNamespace: 'platform' }),
  ).ingress;
  expect(others).toEqual([]);
  expect(first?.from).toContainEqual({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'platform' } },
    podSelector: {
      matchExpressions: [{ key: 'chancery.dev/client-id', operator: 'In', values: ['service-operator'] }],
    },
  });
});

test('spec.image replaces the image; spec.version alone replaces the tag of the installation’s image', () => {
  const of = (spec: object, validator = 'registry.example.org:5000/chancery/validator:0.1.0') =>
    imageOf(input(spec, { ...installationText, images: { validator } }));
  expect(of({})).toBe('registry.example.org:5000/chancery/validator:0.1.0');
  expect(of({ version: '1.4.0' })).toBe('registry.example.org:5000/chancery/validator:1.4.0');
  expect(of({ version: '1.4.0' }, `chancery/validator@sha256:${'0'.repeat(64)}`)).toBe(
    'chancery/validator:1.4.0',
  );
  expect(of({ version: '1.4.0', image: 'other:1' })).toBe('other:1');
});

test('the template does not depend on replicas, claim sizes or quorums', () => {
  const one = podTemplate(input({ replicas: 4 }), 'hash');
  const two = podTemplate(
    input({ replicas: 7 }, installationText, { faultTolerance: 2, claimSize: '9Gi' }),
    'hash',
  );
  expect(two).toEqual(one);
});
