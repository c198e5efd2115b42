import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { setStatus } from '../../harness/validation.ts';
import { explainFailures } from '../diagnosis.ts';
import { namespace } from '../installed.ts';
import { type NodeProbe, startNodeProbe, type ValidationReport } from './behind-cut.ts';
import { power } from './node-power.ts';
import { type NodePlan, planNodes } from './placement.ts';
import { openStage, pauseBoundMs, type Stage } from './stage.ts';

/** Losses of power or network of nodes, under load. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** A loss must be reported within this time. */
const shownMs = 10_000;
/** The cluster accepts a returned node after some of its own timeouts. */
const recoveryMs = 120_000;
/** How long the test expects no eviction: several polling rounds of the operator. */
const patienceMs = 12_000;

let stage: Stage;
let places: NodePlan;

beforeAll(async () => {
  places = await planNodes();
  stage = await openStage();
  await stage.set.settled(recoveryMs);
}, 150_000);
afterAll(() => stage.close());

explainFailures(namespace);

/** Functions that restore the nodes after a test. */
const repairs: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const repair of repairs.splice(0)) await repair();
});

async function cut(node: string): Promise<() => Promise<void>> {
  const heal = once(() => power('heal', node));
  repairs.push(heal);
  await power('cut', node);
  return heal;
}

function once(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= act();
    return done;
  };
}

async function kill(node: string): Promise<() => Promise<void>> {
  const start = once(() => power('start', node));
  repairs.push(start);
  await power('kill', node);
  return start;
}

/** Milliseconds from a time until a condition has a status. */
async function shown(type: string, status: string, fromMs: number): Promise<number> {
  await stage.set.becomes(type, status, shownMs);
  return performance.now() - fromMs;
}

const nodeFaultTolerance = (expected: number) =>
  waitFor(async () => (await stage.set.read()).status.nodeFaultTolerance === expected, {
    what: `nodeFaultTolerance ${expected}`,
    deadlineMs: 30_000,
    everyMs: 300,
  });

test('four members run on four nodes, and one node may fail', async () => {
  const nodes = (await stage.set.pods()).map(({ spec }) => spec.nodeName);
  expect(nodes.toSorted()).toEqual(places.validators);
  const { faultTolerance, nodeFaultTolerance: ofNodes } = (await stage.set.read()).status;
  expect([faultTolerance, ofNodes]).toEqual([1, 1]);
});

test('a node loses power: sealing continues, the set reports it within 10 s and recovers', async () => {
  const { set } = stage;
  const before = await set.uids();
  stage.load();
  await stage.sealsMore(5);
  const from = (await stage.height()) - 1;
  // the gateway calls this member first
  const node = await set.nodeOf('main-0');
  const killedAt = performance.now();
  const killed = kill(node);
  const degradedMs = await shown('Degraded', 'True', killedAt);
  const start = await killed;
  await stage.sealsMore(10);
  expect((await set.condition('QuorumHealthy'))?.status).toBe('True');
  await nodeFaultTolerance(0);
  await start();
  await set.settled(recoveryMs);
  const recoveredMs = performance.now() - killedAt;
  await stage.isSignedBy('validator-main-0', await stage.height());
  await nodeFaultTolerance(1);
  await stage.judge();
  const pauseMs = await stage.longestPause(from);
  print(
    `power lost: Degraded after ${degradedMs}, longest pause ${pauseMs}, well again after ${recoveredMs}`,
  );
  expect(degradedMs).toBeLessThan(shownMs);
  expect(pauseMs).toBeLessThan(pauseBoundMs);
  // no pod was deleted because of it
  expect(await set.uids()).toEqual(before);
}, 240_000);

test.runIf(full)(
  'two nodes lose power at once: nothing is sealed, the set says within 10 s that its quorum is lost, no pod is taken, and with both back there is one chain',
  async () => {
    const { set } = stage;
    const before = await set.uids();
    const load = stage.load();
    await stage.sealsMore(5);
    // one of them is the member that the gateway calls first
    const nodes = await Promise.all(['main-0', 'main-2'].map((pod) => set.nodeOf(pod)));
    const killedAt = performance.now();
    const killed = Promise.all(nodes.map(kill));
    const lostMs = await shown('QuorumHealthy', 'False', killedAt);
    expect(await set.condition('QuorumHealthy')).toMatchObject({ reason: 'QuorumLost' });
    const starts = await killed;
    await expectNoReplacement(load);
    expect(await set.uids()).toEqual(before);
    const { api, root, registerId } = stage.ledger;
    const left = await setStatus(api, root, registerId);
    expect(left).toMatchObject({ status: 'WaitingForValidators', operational: 2, quorumAvailable: false });
    expect(reachable(left)).toEqual(['validator-main-1', 'validator-main-3']);

    const startedAt = performance.now();
    await Promise.all(starts.map((start) => start()));
    await set.becomes('QuorumHealthy', 'True', recoveryMs);
    await stage.sealsMore(5, recoveryMs);
    const sealedMs = performance.now() - startedAt;
    await set.settled(recoveryMs);
    for (const member of ['validator-main-0', 'validator-main-2'])
      await stage.isSignedBy(member, await stage.height());
    await stage.judge();
    expect(await set.uids()).toEqual(before);
    print(
      `two without power: quorum known to be lost after ${lostMs}, sealing again ${sealedMs} after both started`,
    );
    expect(lostMs).toBeLessThan(shownMs);
  },
  300_000,
);

test('two nodes are cut off: neither side seals, both serve reads marked as possibly stale, no pod is replaced, and healing gives one chain', async () => {
  const { set } = stage;
  const before = await set.uids();
  const load = stage.load();
  await stage.sealsMore(5);
  const nodes = await Promise.all(['main-2', 'main-3'].map((pod) => set.nodeOf(pod)));
  const listener = await startNodeProbe('main-2', nodes[0] ?? '', stage.ledger);
  repairs.push(() => listener.stop());

  const cutAt = performance.now();
  const cutAtMs = Date.now();
  const healFirst = await cut(nodes[0] ?? '');
  const degradedMs = await shown('Degraded', 'True', cutAt);
  await stage.sealsMore(5);
  expect((await set.condition('QuorumHealthy'))?.status).toBe('True');

  const lostAt = performance.now();
  const healSecond = await cut(nodes[1] ?? '');
  const lostMs = await shown('QuorumHealthy', 'False', lostAt);
  expect(await set.condition('QuorumHealthy')).toMatchObject({ reason: 'QuorumLost' });
  await expectNoReplacement(load);
  expect(await set.uids()).toEqual(before);
  // the side of the services has no majority either: reads are served and marked as stale
  const { api, root, registerId } = stage.ledger;
  const left = await setStatus(api, root, registerId);
  expect(left).toMatchObject({ status: 'WaitingForValidators', operational: 2, quorumAvailable: false });
  expect(reachable(left)).toEqual(['validator-main-0', 'validator-main-1']);
  const height = await stage.height();

  const healedAtMs = Date.now();
  await healFirst();
  await set.becomes('QuorumHealthy', 'True', recoveryMs);
  await stage.sealsMore(5, recoveryMs);
  await healSecond();
  await set.settled(recoveryMs);
  await judgePartitionedMember(listener, { fromMs: cutAtMs, untilMs: healedAtMs, height });
  await stage.judge();
  expect(await set.uids()).toEqual(before);
  print(`cut off: Degraded after ${degradedMs}, quorum known to be lost after ${lostMs}`);
  expect(Math.max(degradedMs, lostMs)).toBeLessThan(shownMs);
}, 300_000);

const reachable = ({ members }: ValidationReport['body']['registers'][number]) =>
  members.filter((each) => each.reachable).map(({ validatorId }) => validatorId);

interface Cut {
  readonly fromMs: number;
  readonly untilMs: number;
  /** Dockets that the others have sealed at its end. */
  readonly height: number;
}

/** Expects the partitioned member to have served reads marked as stale, and to be healthy again. */
async function judgePartitionedMember(listener: NodeProbe, { fromMs, untilMs, height }: Cut): Promise<void> {
  const during = ({ atMs }: { readonly atMs: number }) => atMs > fromMs && atMs < untilMs;
  const healths = (await listener.health()).filter(during);
  const stale = healths.findIndex(({ body }) => body.status === 'Degraded');
  const staleHealth = healths[stale];
  expect((staleHealth?.atMs ?? Number.POSITIVE_INFINITY) - fromMs).toBeLessThan(shownMs);
  expect(staleHealth?.body.checks.find(({ name }) => name === 'quorum')?.error).toMatch(
    /^stale: [12] of 4 members of register .* were heard in the last 5 s, a quorum is 3/,
  );
  // later its signing component is unreachable too, and it is not ready
  const quorums = healths.slice(stale).map(({ body }) => body.checks.find(({ name }) => name === 'quorum'));
  expect(new Set(quorums.map((each) => each?.status))).toEqual(new Set(['Degraded']));
  const { registerId } = stage.ledger;
  const answers = (await listener.validation()).filter(during);
  const last = answers.at(-1)?.body.registers.find((each) => each.registerId === registerId);
  expect(last).toMatchObject({ status: 'WaitingForValidators', operational: 1, quorumAvailable: false });
  expect(last && reachable(last)).toEqual(['validator-main-2']);
  expect(last?.lastDocketNumber).toBeLessThan(height - 1);
  const isWell = async () => (await listener.health()).at(-1)?.body.status === 'Healthy';
  await waitFor(isWell, { what: 'the member to be in touch', deadlineMs: 30_000, everyMs: 500 });
}

/** Expects no replacement despite a requested rollout, while submissions are accepted. */
async function expectNoReplacement(load: ReturnType<Stage['load']>): Promise<void> {
  const { set } = stage;
  const [pods, height, accepted] = [await set.uids(), await stage.height(), load.accepted.size];
  await set.patch({ podAnnotations: { 'example.org/change': 'wanted' } });
  const endsAt = performance.now() + patienceMs;
  while (performance.now() < endsAt) {
    expect(await set.uids()).toEqual(pods);
    expect(await stage.height()).toBe(height);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  expect(await set.condition('Ready')).toMatchObject({ status: 'False', reason: 'QuorumLost' });
  expect(load.accepted.size).toBeGreaterThan(accepted);
  await set.patch({ podAnnotations: null });
  await waitFor(
    async () => {
      const { metadata, status } = await set.read();
      return metadata.generation === status.observedGeneration;
    },
    { what: 'the last change to be seen', deadlineMs: 30_000, everyMs: 300 },
  );
}

/** Prints a line with numbers in whole milliseconds. */
function print(text: string): void {
  process.stdout.write(`${text.replaceAll(/\d+\.\d+/g, (number) => `${Math.round(Number(number))} ms`)}\n`);
}
