import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ApiClients } from './callers.ts';
import { changeInstallation, namespace } from './installed.ts';
import { kubectl } from './kubectl.ts';
import { beginLoad, expectNothingLost, type Ledger, openLedger } from './ledger-under-load.ts';
import { useMainSet } from './main-set.ts';
import { isLive, within } from './running-set.ts';
import {
  podsWithIdentity,
  replacePods,
  restartsOf,
  startIssuer,
  stopIssuer,
  untilAllRequestsFailed,
  whileCounting,
} from './svids-in-time.ts';

/** Rotation of identities, and an unavailable issuer. */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** Minimum of the chart; an SVID is replaced after 27 to 30 s. */
const ttlSeconds = 60;
const perSecond = 20;
/** Members with short SVIDs: one in the short form, all in the long form. */
const members = (full ? [0, 1, 2, 3] : [3]).map((ordinal) => `main-${ordinal}`);
const turnoverMs = 600_000;
const awayMs = 600_000;
/** Duration of calls after the issuer is stopped; each SVID is valid for at least 25 s. */
const safeMs = 12_000;

const main = useMainSet();
const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const print = (text: string) => void process.stdout.write(`${text}\n`);
const isMember = (name: string) => name.startsWith('main-');
let ledger: Ledger;
let organizationId: string;
/** Pods with short SVIDs. */
let shortLived: readonly string[];

const names = async () => [...(await podsWithIdentity(main.server)).keys()];
/** Client id in the metrics of the issuer. */
const clientIdOf = (pod: string) =>
  isMember(pod) ? `validator-${pod}` : pod.split('-').slice(0, -2).join('-');

beforeAll(async () => {
  await changeInstallation(`identity.serviceAccount.ttlSeconds=${ttlSeconds}`);
  ledger = await openLedger('invoices');
  organizationId = await look('get', 'ten/acme', '-o', 'jsonpath={.status.organizationId}');
  const services = (await names()).filter((name) => !isMember(name));
  for (const member of members.slice(1)) {
    await replacePods(main.server, [member]);
    await main.set.settled(60_000);
  }
  await replacePods(main.server, [...services, ...members.slice(0, 1)]);
  await main.set.settled(60_000);
  shortLived = (await names()).filter((name) => !isMember(name) || members.includes(name));
}, 360_000);

// the next SVID of each pod is valid for an hour again
afterAll(() => changeInstallation(), 180_000);

/** Clients call every service and send transactions during an action; returns the number of answered calls. */
async function whileCalled(act: () => Promise<void>) {
  const callers = new ApiClients(ledger, organizationId);
  const load = beginLoad(ledger, perSecond);
  try {
    await act();
  } finally {
    await Promise.all([callers.stop(), load.stop()]);
  }
  expect([callers.unexpected, callers.repeated]).toEqual([[], 0]);
  expect({ unexpected: load.unexpected, refused: load.refused }).toEqual({ unexpected: [], refused: 0 });
  const accepted = new Set([...callers.accepted, ...load.accepted]);
  await expectNothingLost(ledger, { accepted, unexpected: [] });
  return { calls: callers.answered + load.accepted.size, accepted: accepted.size };
}

/** Waits until the restarted issuer has issued an SVID for each pod; returns the milliseconds. */
const untilAllGiven = (deadlineMs: number): Promise<number> =>
  whileCounting((count) =>
    within('new SVIDs', deadlineMs, async () => {
      const counts = await count();
      const late = shortLived.filter((pod) => !counts.has(clientIdOf(pod)));
      if (late.length > 0) throw new Error(`none yet for ${late.join(', ')}`);
      return true;
    }),
  );

test('SVIDs are rotated under load, and the issuer is unavailable at the time of renewal: no call fails, no pod restarts', async () => {
  const before = await restartsOf(main.server);
  let failedPods: readonly string[] = [];
  let [goneMs, backMs] = [0, 0];
  const { calls, accepted } = await whileCalled(async () => {
    await stopIssuer();
    const since = new Date();
    failedPods = await untilAllRequestsFailed(main.server, shortLived, { since, patienceMs: 8_000 });
    goneMs = Date.now() - since.getTime();
    await startIssuer();
    backMs = await untilAllGiven(45_000);
  });
  print(
    `issuer away for ${goneMs} ms: ${failedPods.length} of ${shortLived.length} asked in vain, all had a new SVID ${Math.round(backMs)} ms after it was back; ${calls} calls, ${accepted} transactions`,
  );
  // pods with a new SVID request the next one only after half of its lifetime
  expect(failedPods.length).toBeGreaterThan(0);
  expect(await restartsOf(main.server)).toEqual(before);
}, 180_000);

test.runIf(full)(
  'SVIDs of everybody turn over for ten minutes under load without a failed call',
  async () => {
    const before = await restartsOf(main.server);
    let fewest = 0;
    const { calls, accepted } = await whileCalled(() =>
      whileCounting(async (count) => {
        const first = await count();
        await pause(turnoverMs);
        const last = await count();
        const given = (pod: string) => (last.get(clientIdOf(pod)) ?? 0) - (first.get(clientIdOf(pod)) ?? 0);
        fewest = Math.min(...shortLived.map(given));
      }),
    );
    print(
      `at least ${fewest} SVIDs for each of ${shortLived.length} pods: ${calls} calls, ${accepted} transactions`,
    );
    // each is replaced at half of its lifetime, or a tenth earlier
    expect(fewest).toBeGreaterThanOrEqual(Math.floor(turnoverMs / (ttlSeconds * 500)) - 1);
    expect(await restartsOf(main.server)).toEqual(before);
  },
  turnoverMs + 180_000,
);

test.runIf(full)(
  'an issuer that is away for ten minutes: SVIDs work until they end, no pod restarts, and all go on when it is back',
  async () => {
    const before = await restartsOf(main.server);
    const readyOf = async () => {
      const pods = [...(await podsWithIdentity(main.server)).values()];
      // the operator has no clients
      return pods.filter(({ metadata }) => !metadata.name.startsWith('service-operator')).map(isLive);
    };
    await stopIssuer();
    const goneAt = performance.now();
    await whileCalled(() => pause(safeMs));
    await within('every SVID to end', ttlSeconds * 1_000, async () => !(await readyOf()).includes(true));
    const endedMs = performance.now() - goneAt;
    await pause(Math.max(0, awayMs - endedMs));
    expect(await restartsOf(main.server)).toEqual(before);
    await startIssuer();
    const backMs = await within('all to be ready', 60_000, async () => !(await readyOf()).includes(false));
    const settledMs = await main.set.settled(60_000);
    print(
      `the last SVID ended ${Math.round(endedMs)} ms after the issuer; all were ready ${Math.round(backMs)} ms and the set well ${Math.round(settledMs)} ms after it was back`,
    );
    await whileCalled(() => pause(20_000));
    expect(await restartsOf(main.server)).toEqual(before);
  },
  awayMs + 360_000,
);
