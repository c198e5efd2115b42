import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { explainFailures } from '../diagnosis.ts';
import { namespace } from '../installed.ts';
import { kubectl } from '../kubectl.ts';
import { power } from './node-power.ts';
import { openStage, type Stage } from './stage.ts';

/** One identity in two pods: the old one on a partitioned node, the new one as its replacement. */

const victim = 'main-3';
const recoveryMs = 120_000;

let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
  await stage.set.settled(recoveryMs);
}, 150_000);
afterAll(() => stage.close());

explainFailures(namespace);

let cutNode: string | undefined;
afterEach(async () => {
  if (cutNode !== undefined) await restoreNode(cutNode);
});

async function restoreNode(node: string): Promise<void> {
  cutNode = undefined;
  await power('heal', node);
  await kubectl('uncordon', node);
  await kubectl('wait', '--for=condition=Ready', `node/${node}`, '--timeout=120s');
}

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
/** Deletes a pod with its volume, so that the next pod can run on another node. */
async function deletePodAndVolume(pod: string, ...how: readonly string[]): Promise<void> {
  await look('delete', 'pvc', `data-${pod}`, '--wait=false');
  await look('delete', 'pod', pod, ...how);
}

const nodeFaultTolerance = (expected: number) =>
  waitFor(async () => (await stage.set.read()).status.nodeFaultTolerance === expected, {
    what: `nodeFaultTolerance ${expected}`,
    deadlineMs: 30_000,
    everyMs: 300,
  });

test('a member is replaced on another node while its old pod runs on a partitioned node: only the new one signs', async () => {
  const { set } = stage;
  stage.load();
  await stage.sealsMore(5);
  const [node, before] = [await set.nodeOf(victim), await set.uids()];
  cutNode = node;
  await power('cut', node);
  await set.becomes('Degraded', 'True', 10_000);
  // the cluster marks a silent node as lost only after a while
  await kubectl('cordon', node);
  await deletePodAndVolume(victim, '--grace-period=0', '--force');
  await set.settled(recoveryMs);
  expect(await set.nodeOf(victim)).not.toBe(node);
  expect((await set.uids()).get(victim)).not.toBe(before.get(victim));
  await stage.isSignedBy(`validator-${victim}`, await stage.height());
  // two members share a node now
  await nodeFaultTolerance(0);
  expect((await set.read()).status.faultTolerance).toBe(1);

  await restoreNode(node);
  const healed = await stage.height();
  await stage.isSignedBy(`validator-${victim}`, healed + 10);
  await set.settled(recoveryMs);
  await stage.judge();
}, 300_000);

test('when the node is back the member is moved to it, and one node may fail again', async () => {
  const { set } = stage;
  await deletePodAndVolume(victim);
  await set.settled(recoveryMs);
  const nodes = (await set.pods()).map(({ spec }) => spec.nodeName);
  expect(new Set(nodes).size).toBe(4);
  await nodeFaultTolerance(1);
  await stage.judge();
}, 200_000);
