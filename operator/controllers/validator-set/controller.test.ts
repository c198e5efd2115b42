import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { labels, podName } from '../../api/names.ts';
import { disruptionBudgets, pods, statefulSets } from '../../kube/kinds.ts';
import { isRecord, type KubeObject } from '../../kube/resource.ts';
import { at, make, put } from '../../kube/testing/fixtures.ts';
import { FakeMembers } from '../../platform/testing/fake-members.ts';
import type { Dependencies } from '../reconciler/dependencies.ts';
import { validatorSets } from '../reconciler/resources.ts';
import { startWorld, type World, writesTo } from '../testing/operator.ts';
import { createValidatorSetController } from './controller.ts';

const REVISION = 'main-1';

let world: World;
let members: FakeMembers;

beforeEach(async () => {
  world = await startWorld();
  members = new FakeMembers();
});

afterEach(() => world.close());

const start = (identity: string) =>
  world.start(identity, (dependencies: Dependencies) => [
    createValidatorSetController({ dependencies, members, principals: members }),
  ]);

/** Simulates the StatefulSet controller: pods run and the status is written. */
function runPods(): void {
  const found = world.find(statefulSets, 'main');
  const { replicas } = (found?.['spec'] ?? { replicas: 0 }) as { replicas: number };
  for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
    const own = { [labels.validatorSet]: 'main', 'controller-revision-hash': REVISION };
    const lastTransitionTime = new Date(world.timing.nowMs()).toISOString();
    const status = {
      podIP: `10.0.0.${ordinal}`,
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime }],
      containerStatuses: [{ ready: true }],
    };
    const content = { spec: { nodeName: `node-${ordinal}` }, status };
    put(world.server.state, pods, make(pods, podName('main', ordinal), content, { labels: own }));
  }
  const observedGeneration = found?.metadata.generation;
  const status = { observedGeneration, updateRevision: REVISION };
  put(world.server.state, statefulSets, { ...found, status } as KubeObject);
}

async function runSet(): Promise<void> {
  world.put(validatorSets, 'main', { replicas: 4 });
  await world.until('its StatefulSet', () => world.find(statefulSets, 'main') !== undefined);
  runPods();
  await world.until('the set to be ready', () => world.isReady(validatorSets, 'main'));
  await world.pass(20_000);
}

const version = () => world.server.state.get(at(validatorSets, 'main')).metadata.resourceVersion;

test('an edit of the template is not Ready before its StatefulSet has a revision for it', async () => {
  await start('one');
  await runSet();
  world.put(validatorSets, 'main', { replicas: 4, resources: { limits: { cpu: '2' } } });
  const generation = world.find(validatorSets, 'main')?.metadata.generation;
  const ready = () => world.condition(validatorSets, 'main', 'Ready');
  const updated = () => {
    const status = world.find(validatorSets, 'main')?.['status'];
    return isRecord(status) ? status['updatedReplicas'] : undefined;
  };
  expect(updated()).toBe(4);
  const statuses = new Set<string>();
  await world.until('the edit to be seen', () => {
    const seen = ready();
    if (seen?.observedGeneration === generation)
      statuses.add(`${seen?.status} ${seen?.message} ${updated()}`);
    return statuses.size > 0;
  });
  await world.pass(5_000);
  expect([...statuses, `${ready()?.status} ${updated()}`]).toEqual([
    'False Waiting for Kubernetes to observe the last change of the StatefulSet 0',
    'False 0',
  ]);
  runPods();
  await world.until('the set to be ready', () => world.isReady(validatorSets, 'main'));
});

test('a new process queries the members before it writes a status, and writes nothing new', async () => {
  const one = await start('one');
  await runSet();
  await one.kill();
  const before = version();
  world.server.requests.length = 0;
  await start('two');
  await world.pass(30_000);
  expect(writesTo(world.server)).toEqual([]);
  expect(version()).toBe(before);
});

test('a silent member is reported at once by a new process', async () => {
  const one = await start('one');
  await runSet();
  await one.kill();
  members.silent.add('main-2');
  await start('two');
  const ready = () => world.condition(validatorSets, 'main', 'Ready');
  await world.until('its silence to be told', () => ready()?.status === 'False');
  expect(ready()?.message).toContain('main-2');
  expect(ready()?.message).not.toContain('main-1');
});

test('while another manager keeps changing a child, no pod is replaced and reports are still shown; then the rollout continues', async () => {
  await start('one');
  await runSet();
  const summary = (type: 'Ready' | 'QuorumHealthy') => world.condition(validatorSets, 'main', type);
  const wantedOfBudget = () => world.find(disruptionBudgets, 'main')?.['spec'];
  const ours = wantedOfBudget();
  const theirs = make(disruptionBudgets, 'main', { spec: { maxUnavailable: 3 } });
  const untilStruck = (what: string, condition: () => boolean) =>
    world.until(what, () => {
      if (isDeepStrictEqual(wantedOfBudget(), ours))
        world.server.state.apply(at(disruptionBudgets, 'main'), theirs, 'rival');
      return condition();
    });
  await untilStruck('the fight to be told', () => summary('Ready')?.reason === 'ReconcileThrottled');
  world.server.state.merge(at(statefulSets, 'main'), { status: { updateRevision: 'main-2' } });
  members.silent.add('main-2').add('main-3');
  await untilStruck('the loss to be told', () => summary('QuorumHealthy')?.status === 'False');
  members.silent.clear();
  await untilStruck('the quorum to be told', () => summary('QuorumHealthy')?.status === 'True');
  const evictions = () => writesTo(world.server).filter((call) => call.endsWith('/eviction'));
  await world.pass(20_000);
  expect([summary('Ready')?.reason, evictions()]).toEqual(['ReconcileThrottled', []]);
  await world.until('the roll', () => evictions().length > 0);
});

test('while the disruption budget refuses an eviction, what the members report is shown; then the rollout continues', async () => {
  await start('one');
  await runSet();
  const ready = () => world.condition(validatorSets, 'main', 'Ready');
  const isReported = () => {
    const status = world.find(validatorSets, 'main')?.['status'];
    const reported = isRecord(status) && Array.isArray(status['members']) ? status['members'] : [];
    return reported.some((each) => each.name === 'main-3' && each.ready === true);
  };
  members.silent.add('main-3');
  await world.until('its silence to be shown', () => !isReported());
  world.server.intercept = ({ target }) =>
    target.subresource === 'eviction' ? { status: 429, reason: 'TooManyRequests' } : undefined;
  world.server.state.merge(at(statefulSets, 'main'), { status: { updateRevision: 'main-2' } });
  await world.until('the refusal', () => ready()?.reason === 'RolloutBlocked');
  members.silent.clear();
  await world.until('its report to be shown', isReported);
  expect(ready()?.message).toContain('does not allow the eviction of main-3');
  world.server.intercept = () => undefined;
  await world.until('the eviction', () => ready()?.reason !== 'RolloutBlocked');
});
