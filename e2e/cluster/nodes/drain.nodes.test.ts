import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { explainFailures } from '../diagnosis.ts';
import { namespace } from '../installed.ts';
import { kubectl, must } from '../kubectl.ts';
import { changed, during, isLive, within } from '../running-set.ts';
import { planNodes } from './placement.ts';
import { openStage, pauseBoundMs, type Stage } from './stage.ts';

/** Drains of nodes during a rollout, under load. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const drainSeconds = 150;
const settleMs = 180_000;

let stage: Stage;

beforeAll(async () => {
  stage = await openStage();
  await stage.set.settled(settleMs);
}, 200_000);
afterAll(() => stage.close());

explainFailures(namespace);

const drained: string[] = [];
afterEach(async () => {
  for (const node of drained.splice(0)) await kubectl('uncordon', node);
});

async function drain(node: string): Promise<void> {
  drained.push(node);
  const args = ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', `--timeout=${drainSeconds}s`];
  await must('kubectl', args, { timeoutMs: (drainSeconds + 10) * 1_000 });
}

async function drainDuringRoll(node: string): Promise<void> {
  const { set } = stage;
  const before = await set.uids();
  const from = (await stage.height()) - 1;
  const startedAt = performance.now();
  let drainMs = 0;
  const { mostAway, away, doubts } = await during(set, drainSeconds * 1_000 + 2 * settleMs, async () => {
    await set.patch({ podAnnotations: { 'example.org/drained': node } });
    await within('the roll to begin', 60_000, async () => !(await set.pods()).every(isLive));
    await drain(node);
    drainMs = performance.now() - startedAt;
    // the volume binds the member to the node, so the rollout waits for it
    expect((await set.pods()).filter(({ spec }) => spec.nodeName === node)).toEqual([]);
    await kubectl('uncordon', node);
    await set.settled(settleMs);
  });
  const pauseMs = await stage.longestPause(from);
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  process.stdout.write(
    `${node}: drained after ${seconds(drainMs)} s, rolled after ${seconds(performance.now() - startedAt)} s, ` +
      `at most ${mostAway} away, longest pause ${seconds(pauseMs)} s\n`,
  );
  expect([mostAway, [...doubts]], away.join('; ')).toEqual([1, []]);
  expect(pauseMs).toBeLessThan(pauseBoundMs);
  expect(changed(before, await set.uids())).toHaveLength(4);
}

// long form: each of the four nodes takes one to two minutes
test.runIf(full)(
  'drains and a roll at the same time never take more than one member, and both come to their end',
  async () => {
    const { validators } = await planNodes();
    stage.load();
    await stage.sealsMore(5);
    for (const node of validators) await drainDuringRoll(node);
    await stage.judge();
  },
  1_200_000,
);
