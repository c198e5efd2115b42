import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SteadyLoad } from '../fault/steady-load.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace } from './installed.ts';
import { type ApiServer, apply, kubectl, openApiServer } from './kubectl.ts';
import { beginLoad, expectNothingLost, type Ledger, openLedger, verifyAll } from './ledger-under-load.ts';
import { changed, follow, type RunningSet, runningSet, within } from './running-set.ts';
import { imageOf, nextVersion, thisVersion } from './versions.ts';

/** A set of four that seals a register under load: new versions, bad versions, losses, scaling. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const perSecond = full ? 50 : 20;
/** The image of another component exits at once, because it refuses the settings of a validator. */
const crashing = imageOf('gateway', thisVersion);

let server: ApiServer;
let set: RunningSet;
let ledger: Ledger;

beforeAll(async () => {
  await ensureInstalled();
  await ensureSamples(90);
  server = await openApiServer();
  set = runningSet(server, 'main');
  await set.patch({ version: thisVersion, update: { minReadySeconds: 2 } });
  await set.settled(240_000);
  ledger = await openLedger('invoices');
}, 480_000);

afterAll(() => server?.stop());

explainFailures(namespace);

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const print = (text: string) => void process.stdout.write(`${text}\n`);
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/**
 * Runs an action under load, then expects all accepted transactions to be sealed once.
 * @returns accepted transactions per second
 */
async function underLoad(what: string, act: () => Promise<void>): Promise<number> {
  const load = beginLoad(ledger, perSecond);
  const startedAt = performance.now();
  try {
    await within('the load to be taken in', 30_000, async () => load.accepted.size > perSecond);
    await act();
  } finally {
    await load.stop();
  }
  return printLoad(what, load, performance.now() - startedAt);
}

async function printLoad(what: string, load: SteadyLoad, tookMs: number): Promise<number> {
  const rate = (load.accepted.size * 1_000) / tookMs;
  const { dockets, transactions } = await expectNothingLost(ledger, load);
  print(
    `${what}: ${load.accepted.size} accepted in ${seconds(tookMs)} (${rate.toFixed(0)} a second, ${load.refused} refused for a moment), each sealed once; register: ${transactions} in ${dockets} dockets`,
  );
  return rate;
}

/** Expects every pod to be replaced once, one at a time, with a quorum at all times. */
async function rollTo(version: string, size: number): Promise<void> {
  const before = await set.uids();
  await set.patch({ version });
  const { mostAway, away, doubts, uids } = await follow(set, 'the roll', {
    deadlineMs: size * 60_000,
    until: async () =>
      changed(before, await set.uids()).length === size && (await set.condition('Ready'))?.status === 'True',
  });
  expect([mostAway, [...doubts]], away.join('; ')).toEqual([1, []]);
  expect([...uids.values()].map((each) => each.size)).toEqual(Array(size).fill(2));
  const images = (await set.pods()).map(({ spec }) => spec.containers[0]?.image);
  expect(images).toEqual(Array(size).fill(imageOf('validator', version)));
}

test(`a new version replaces every member once under ${perSecond} transactions a second`, async () => {
  const rate = await underLoad('roll of four', () => rollTo(nextVersion, 4));
  expect(rate).toBeGreaterThan(0.8 * perSecond);
  const format = 'jsonpath={range .items[*]}{.action}: {.message}{.note}{"\\n"}{end}';
  // The note names five registers at most.
  expect(await look('get', 'events', '-o', format)).toMatch(/3 must agree;.*one is replaced/);
}, 360_000);

test('a version that crashes stops after one member; going back replaces only that member', async () => {
  const before = await set.uids();
  let bad: readonly string[] = [];
  const rate = await underLoad('bad version and back', async () => {
    await set.patch({ image: crashing });
    const stopped = await follow(set, 'the roll to stop, and the member to crash again', {
      deadlineMs: 120_000,
      until: async () => {
        const ready = await set.condition('Ready');
        const isStopped = ready?.reason === 'RolloutBlocked' && /CrashLoopBackOff|Error/.test(ready.message);
        const restarts = (await set.pods()).map(
          ({ status }) => status.containerStatuses?.[0]?.restartCount ?? 0,
        );
        return isStopped && Math.max(...restarts) >= 2;
      },
    });
    expect([...stopped.doubts]).toEqual([]);
    bad = changed(before, await set.uids());
    expect(bad).toHaveLength(1);
    const during = await set.uids();
    await set.patch({ image: null });
    const startedAt = performance.now();
    const back = await follow(set, 'the set to be well', {
      deadlineMs: 180_000,
      until: async () =>
        changed(during, await set.uids()).length > 0 && (await set.condition('Ready'))?.status === 'True',
    });
    print(`back from a bad version after ${seconds(performance.now() - startedAt)}`);
    expect([...back.doubts]).toEqual([]);
    expect(changed(during, await set.uids())).toEqual(bad);
  });
  // clients wait for the crashing member: fewer transactions, not none
  expect(rate).toBeGreaterThan(0.5 * perSecond);
  expect(changed(before, await set.uids())).toEqual(bad);
}, 420_000);

test.runIf(full)('what was sealed meanwhile verifies offline', () => verifyAll(ledger), 600_000);

test('a lost member is reported within 10 s and recovers', async () => {
  await look('delete', 'pod/main-0', '--grace-period=0', '--force');
  await within('Degraded', 10_000, async () => (await set.condition('Degraded'))?.status === 'True');
  expect((await set.condition('QuorumHealthy'))?.status).toBe('True');
  await set.settled(120_000);
});

const voting = () => look('get', 'reg/invoices', '-o', 'jsonpath={.status.validators.size}');

async function grow(to: number): Promise<void> {
  await look('scale', 'vset/main', `--replicas=${to}`);
  const tookMs = await within(`${to} to vote`, to * 40_000, async () => (await voting()) === String(to));
  print(`${to} vote after ${seconds(tookMs)}`);
  await set.settled(60_000);
}

/** Expects no pod to be deleted before the register has removed its member from the list. */
async function shrink(to: number): Promise<void> {
  const early: number[] = [];
  await look('scale', 'vset/main', `--replicas=${to}`);
  const tookMs = await within(`${to} pods`, 180_000, async () => {
    const [size, pods] = [Number(await voting()), (await set.pods()).length];
    if (pods < size) early.push(pods);
    return pods === to;
  });
  print(`${to} remain after ${seconds(tookMs)}`);
  expect(early).toEqual([]);
  await set.settled(60_000);
}

test.runIf(full)(
  'so it goes with seven',
  async () => {
    await grow(7);
    const { version } = (await set.read()).spec;
    const other = version === thisVersion ? nextVersion : thisVersion;
    const rate = await underLoad('roll of seven', () => rollTo(other, 7));
    expect(rate).toBeGreaterThan(0.8 * perSecond);
    await shrink(4);
  },
  1_200_000,
);

test('a fifth member is added and removed again, also after the deletion of one of its registers', async () => {
  await grow(5);
  const register = {
    apiVersion: 'chancery.dev/v1alpha1',
    kind: 'Register',
    metadata: { name: 'short-lived' },
    spec: {
      title: 'Short-lived',
      tenantRef: { name: 'acme' },
      validatorSetRef: { name: 'main' },
      deletionPolicy: 'Tombstone',
    },
  };
  await apply(namespace, register);
  await look('wait', '--for=condition=Ready', 'reg/short-lived', '--timeout=60s');
  await look('delete', 'reg/short-lived', '--timeout=30s');
  await shrink(4);
}, 360_000);
