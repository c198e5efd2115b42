import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { setStatus } from '../../harness/validation.ts';
import { explainFailures } from '../diagnosis.ts';
import { namespace } from '../installed.ts';
import { type Listener, listenBeside, type ValidationSaid } from './behind-cut.ts';
import { power } from './node-power.ts';
import { findPlaces, type Places } from './placement.ts';
import { openStage, pauseBoundMs, type Stage } from './stage.ts';

/** Nodes that lose power or their cable, under load (A15 to A17, operator scenario 5). */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** A loss is shown within this time. */
const shownMs = 10_000;
/** A node that comes back is believed by the cluster after some of its own timeouts. */
const recoveryMs = 120_000;
/** How long the operator is watched for an eviction that must not happen: several of its rounds. */
const patienceMs = 12_000;

let stage: Stage;
let places: Places;

beforeAll(async () => {
  places = await findPlaces();
  stage = await openStage();
  await stage.set.settled(recoveryMs);
}, 150_000);
afterAll(() => stage.close());

explainFailures(namespace);

/** What puts back what a test has done to nodes. */
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

/** Time until a condition has a status, from a moment. */
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

test('four members stand on four nodes, and one node may fail', async () => {
  const nodes = (await stage.set.pods()).map(({ spec }) => spec.nodeName);
  expect(nodes.toSorted()).toEqual(places.validators);
  const { faultTolerance, nodeFaultTolerance: ofNodes } = (await stage.set.read()).status;
  expect([faultTolerance, ofNodes]).toEqual([1, 1]);
});

test('a node loses power: sealing goes on, the set says so within 10 s, and recovers by itself', async () => {
  const { set } = stage;
  const before = await set.uids();
  stage.load();
  await stage.sealsMore(5);
  const from = (await stage.height()) - 1;
  // the gateway asks this one first
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
  say(`power lost: Degraded after ${degradedMs}, longest pause ${pauseMs}, well again after ${recoveredMs}`);
  expect(degradedMs).toBeLessThan(shownMs);
  expect(pauseMs).toBeLessThan(pauseBoundMs);
  // nobody has taken a pod for it
  expect(await set.uids()).toEqual(before);
}, 240_000);

test.runIf(full)(
  'two nodes lose power at once: nothing is sealed, the set says within 10 s that its quorum is lost, no pod is taken, and with both back there is one chain',
  async () => {
    const { set } = stage;
    const before = await set.uids();
    const load = stage.load();
    await stage.sealsMore(5);
    // one of them is whom the gateway asks first
    const nodes = await Promise.all(['main-0', 'main-2'].map((pod) => set.nodeOf(pod)));
    const killedAt = performance.now();
    const killed = Promise.all(nodes.map(kill));
    const lostMs = await shown('QuorumHealthy', 'False', killedAt);
    expect(await set.condition('QuorumHealthy')).toMatchObject({ reason: 'QuorumLost' });
    const starts = await killed;
    await nothingMoves(load);
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
    say(
      `two without power: quorum known to be lost after ${lostMs}, sealing again ${sealedMs} after both started`,
    );
    expect(lostMs).toBeLessThan(shownMs);
  },
  300_000,
);

test('two nodes are cut off: nothing is sealed on either side, each serves reads and says that they may be stale, no pod is taken, and healing gives one chain', async () => {
  const { set } = stage;
  const before = await set.uids();
  const load = stage.load();
  await stage.sealsMore(5);
  const nodes = await Promise.all(['main-2', 'main-3'].map((pod) => set.nodeOf(pod)));
  const listener = await listenBeside('main-2', nodes[0] ?? '', stage.ledger);
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
  await nothingMoves(load);
  expect(await set.uids()).toEqual(before);
  // who is left on the side of the services is no majority either: reads are served, and say so
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
  await behindTheCut(listener, { fromMs: cutAtMs, untilMs: healedAtMs, height });
  await stage.judge();
  expect(await set.uids()).toEqual(before);
  say(`cut off: Degraded after ${degradedMs}, quorum known to be lost after ${lostMs}`);
  expect(Math.max(degradedMs, lostMs)).toBeLessThan(shownMs);
}, 300_000);

const reachable = ({ members }: ValidationSaid['body']['registers'][number]) =>
  members.filter((each) => each.reachable).map(({ validatorId }) => validatorId);

interface Cut {
  readonly fromMs: number;
  readonly untilMs: number;
  /** Dockets that the others have sealed by its end. */
  readonly height: number;
}

/** The member on the other side served reads all the time, told that they may be stale, and is well again. */
async function behindTheCut(listener: Listener, { fromMs, untilMs, height }: Cut): Promise<void> {
  const during = ({ atMs }: { readonly atMs: number }) => atMs > fromMs && atMs < untilMs;
  const healths = (await listener.health()).filter(during);
  const stale = healths.findIndex(({ body }) => body.status === 'Degraded');
  const told = healths[stale];
  expect((told?.atMs ?? Number.POSITIVE_INFINITY) - fromMs).toBeLessThan(shownMs);
  expect(told?.body.checks.find(({ name }) => name === 'quorum')?.error).toMatch(
    /^stale: [12] of 4 members of register .* were heard in the last 5 s, a quorum is 3/,
  );
  // later it misses its signing component too, and is not ready
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

/** With a roll that is wanted, and submissions that are taken. */
async function nothingMoves(load: ReturnType<Stage['load']>): Promise<void> {
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

/** Numbers in whole milliseconds. */
function say(text: string): void {
  process.stdout.write(`${text.replaceAll(/\d+\.\d+/g, (number) => `${Math.round(Number(number))} ms`)}\n`);
}
