import { expect, test } from 'vitest';
import { editedChart, install } from './chart.ts';
import { namespace, release } from './installed.ts';
import { kubectl } from './kubectl.ts';
import { useMainSet } from './main-set.ts';
import { changed, within } from './running-set.ts';
import { imageOf, nextVersion, thisVersion } from './versions.ts';

const main = useMainSet();
const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);

/** Children of sets, each with the version of its last write; what counts pods is written when pods change. */
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

/** The operator that leads, by pod. */
async function leader(): Promise<string> {
  const holder = await look('get', 'lease/chancery-operator', '-o', 'jsonpath={.spec.holderIdentity}');
  return holder.split('_')[0] ?? '';
}

async function podsOfOperator(image: string): Promise<readonly string[]> {
  const path = `jsonpath={range .items[?(@.spec.containers[0].image=="${image}")]}{.metadata.name}{"\\n"}{end}`;
  const found = await look('get', 'pods', '-l', 'app.kubernetes.io/name=operator', '-o', path);
  return found.trim().split('\n');
}

/** Deletes the NetworkPolicy of the set: who puts it back has looked at the whole set. */
async function reconciledAnew(): Promise<void> {
  await look('delete', 'networkpolicy/main');
  await within('the operator to look at the set', 30_000, async () => {
    const found = await look('get', 'networkpolicy/main', '--ignore-not-found', '-o', 'name');
    return found !== '';
  });
  await main.set.settled(30_000);
}

const withoutPolicies = (text: string) =>
  text
    .split('\n')
    .filter((line) => !line.startsWith('NetworkPolicy'))
    .join('\n');

/** Does something to the operator, lets it work, and expects nothing of the sets to have been touched. */
async function expectNothingTouched(act: () => Promise<void>): Promise<void> {
  const [pods, children, object] = [await main.set.uids(), await childrenOfSets(), await main.set.read()];
  const restarts = async () =>
    (await main.set.pods()).map(({ status }) => status.containerStatuses?.[0]?.restartCount);
  const before = await restarts();
  await act();
  await reconciledAnew();
  expect(changed(pods, await main.set.uids())).toEqual([]);
  expect(await restarts()).toEqual(before);
  expect(withoutPolicies(await childrenOfSets())).toBe(withoutPolicies(children));
  expect((await main.set.read()).metadata.generation).toBe(object.metadata.generation);
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
])('%s of the operator restarts no validator and writes nothing of a set', (_, version) =>
  expectNothingTouched(() => runOperator(version)),
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
