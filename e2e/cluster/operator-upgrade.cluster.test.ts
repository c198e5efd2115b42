import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { editedChart, install } from './chart.ts';
import { namespace, release } from './installed.ts';
import { apply, kubectl } from './kubectl.ts';
import { useMainSet } from './main-set.ts';
import { within } from './running-set.ts';
import { imageOf, nextVersion, thisVersion } from './versions.ts';

/** The long form has nineteen sets of one small member each in addition to the set of the samples. */
const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const small = full ? Array.from({ length: 19 }, (_, place) => `small-${place}`) : [];
const sets = ['main', ...small];

const ofSets = `chancery.dev/validator-set in (${sets.join(',')})`;

const main = useMainSet();
const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);

beforeAll(async () => {
  if (small.length === 0) return;
  const spec = {
    replicas: 1,
    storage: { size: '64Mi' },
    resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '256Mi' } },
  };
  const kind = { apiVersion: 'chancery.dev/v1alpha1', kind: 'ValidatorSet' };
  const startedAt = performance.now();
  await apply(namespace, ...small.map((name) => ({ ...kind, metadata: { name }, spec })));
  await settled(400_000);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  process.stdout.write(`${small.length} small sets were well after ${seconds} s\n`);
}, 420_000);

afterAll(async () => {
  if (small.length === 0) return;
  await look('delete', 'validatorsets', ...small, '--timeout=120s');
  await look('delete', 'pvc', '-l', `${ofSets},chancery.dev/validator-set!=main`, '--timeout=60s');
}, 150_000);

const setList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string(), generation: z.number() }),
      status: z
        .object({
          observedGeneration: z.number().optional(),
          conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
        })
        .prefault({}),
    }),
  ),
});

const named = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

const readSets = async () => {
  const path = `/apis/chancery.dev/v1alpha1/namespaces/${namespace}/validatorsets`;
  const { items } = setList.parse((await main.server.request('GET', path)).body);
  return items.filter(({ metadata }) => sets.includes(metadata.name));
};

/** Waits until all sets are Ready in their last generation. */
async function settled(deadlineMs: number): Promise<void> {
  await within('all sets to be well', deadlineMs, async () => {
    const found = await readSets();
    return (
      found.length === sets.length &&
      found.every(
        ({ metadata, status }) =>
          status.observedGeneration === metadata.generation &&
          status.conditions.some((each) => each.type === 'Ready' && each.status === 'True'),
      )
    );
  });
}

/** The last spec of each set, by name. */
const generations = async () =>
  (await readSets()).map(({ metadata }) => [metadata.name, metadata.generation] as const);

/** Pods of sets with the restarts of their containers. */
const podsOfSets = () => {
  const columns =
    'custom-columns=NAME:.metadata.name,UID:.metadata.uid,RESTARTS:.status.containerStatuses[*].restartCount';
  return look('get', 'pods', '-l', ofSets, '--sort-by=.metadata.name', '-o', columns);
};

/** Children of sets with their resource versions, without objects whose status counts pods. */
async function childrenOfSets(): Promise<string> {
  const kinds = 'statefulsets,services,configmaps,serviceaccounts,networkpolicies,poddisruptionbudgets';
  const columns =
    'custom-columns=KIND:.kind,NAME:.metadata.name,UID:.metadata.uid,GENERATION:.metadata.generation,VERSION:.metadata.resourceVersion';
  return look('get', kinds, '-l', 'chancery.dev/validator-set', '--sort-by=.metadata.name', '-o', columns);
}

async function podsOfServices(): Promise<string> {
  const labels = 'chancery.dev/client-id,chancery.dev/client-id!=service-operator';
  return look(
    'get',
    'pods',
    '-l',
    labels,
    '--sort-by=.metadata.name',
    '-o',
    'custom-columns=UID:.metadata.uid',
  );
}

/** Pod of the leading operator. */
async function leader(): Promise<string> {
  const holder = await look('get', 'lease/chancery-operator', '-o', 'jsonpath={.spec.holderIdentity}');
  return holder.split('_')[0] ?? '';
}

async function podsOfOperator(image: string): Promise<readonly string[]> {
  const path = `jsonpath={range .items[?(@.spec.containers[0].image=="${image}")]}{.metadata.name}{"\\n"}{end}`;
  const found = await look('get', 'pods', '-l', 'app.kubernetes.io/name=operator', '-o', path);
  return found.trim().split('\n');
}

/** Deletes the NetworkPolicy of each set; its restoration proves a reconcile of the whole set. */
async function untilAllReconciled(): Promise<void> {
  const startedAt = performance.now();
  await look('delete', 'networkpolicies', ...sets);
  await within('the operator to look at each set', 30_000, async () => {
    const path = `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
    const { items } = named.parse((await main.server.request('GET', path)).body);
    return items.filter(({ metadata }) => sets.includes(metadata.name)).length === sets.length;
  });
  await settled(30_000);
  const ms = Math.round(performance.now() - startedAt);
  process.stdout.write(`${sets.length} sets were looked at within ${ms} ms\n`);
}

const withoutPolicies = (text: string) =>
  text
    .split('\n')
    .filter((line) => !line.startsWith('NetworkPolicy'))
    .join('\n');

/** Changes the operator, waits for reconciles, and expects no change of the sets. */
async function expectNothingTouched(act: () => Promise<void>): Promise<void> {
  const [pods, children, before] = [await podsOfSets(), await childrenOfSets(), await generations()];
  // without the header line
  expect(pods.trim().split('\n')).toHaveLength(1 + 4 + small.length);
  await act();
  await untilAllReconciled();
  expect(await podsOfSets()).toBe(pods);
  expect(withoutPolicies(await childrenOfSets())).toBe(withoutPolicies(children));
  expect(await generations()).toEqual(before);
}

async function runOperator(version: string): Promise<void> {
  const image = imageOf('operator', version);
  await look('set', 'image', 'deployment/service-operator', `operator=${image}`);
  await look('rollout', 'status', 'deployment/service-operator', '--timeout=90s');
  await within('one of the new ones to lead', 40_000, async () =>
    (await podsOfOperator(image)).includes(await leader()),
  );
}

test.each([
  ['an upgrade', nextVersion],
  ['a downgrade', thisVersion],
])(
  '%s of the operator restarts no validator and writes nothing of a set',
  (_, version) => expectNothingTouched(() => runOperator(version)),
  240_000,
);

test('an upgrade of the chart restarts no validator and writes nothing of a set', async () => {
  const services = await podsOfServices();
  const chart = editedChart('Chart.yaml', (text) =>
    text.replaceAll(/^((?:app)?[vV]ersion:).*$/gm, `$1 "${nextVersion}"`),
  );
  try {
    await expectNothingTouched(async () => {
      await install({ ...release, chart: chart.folder, set: [`image.tag=${thisVersion}`] });
      const version = 'jsonpath={.metadata.labels.app\\.kubernetes\\.io/version}';
      expect(await look('get', 'deployment/service-operator', '-o', version)).toBe(nextVersion);
    });
  } finally {
    chart.remove();
  }
  expect(await podsOfServices()).toBe(services);
}, 300_000);
