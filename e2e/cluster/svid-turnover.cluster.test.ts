import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Callers } from './callers.ts';
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
  untilAskedInVain,
  whileCounting,
} from './svids-in-time.ts';

/** The installation while its identities turn over, and while nobody gives them (scenario 21). */

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
/** The shortest that the chart takes: an SVID is replaced after 27 to 30 s. */
const ttlSeconds = 60;
const perSecond = 20;
/** One member has a short SVID in the short form, all of them in the long one. */
const members = (full ? [0, 1, 2, 3] : [3]).map((ordinal) => `main-${ordinal}`);
const turnoverMs = 600_000;
const awayMs = 600_000;
/** For so long somebody calls after the issuer went: each SVID has 25 s left at least. */
const safeMs = 12_000;

const main = useMainSet();
const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const say = (text: string) => void process.stdout.write(`${text}\n`);
const isMember = (name: string) => name.startsWith('main-');
let ledger: Ledger;
let organizationId: string;
/** Pods whose SVIDs are short. */
let shortLived: readonly string[];

const names = async () => [...(await podsWithIdentity(main.server)).keys()];
/** As the issuer counts them. */
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

// the next SVID of each pod lives for an hour again
afterAll(() => changeInstallation(), 180_000);

/** Somebody calls every service and sends transactions while something is done; gives how many calls were answered. */
async function whileCalled(act: () => Promise<void>) {
  const callers = new Callers(ledger, organizationId);
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

/** Waits until the issuer, since it started, has given each pod an SVID; gives how many milliseconds that took. */
const untilAllGiven = (deadlineMs: number): Promise<number> =>
  whileCounting((count) =>
    within('new SVIDs', deadlineMs, async () => {
      const counts = await count();
      const late = shortLived.filter((pod) => !counts.has(clientIdOf(pod)));
      if (late.length > 0) throw new Error(`none yet for ${late.join(', ')}`);
      return true;
    }),
  );

test('SVIDs turn over under load, and the issuer is away when their time comes: no call fails, no pod restarts', async () => {
  const before = await restartsOf(main.server);
  let asked: readonly string[] = [];
  let [goneMs, backMs] = [0, 0];
  const { calls, accepted } = await whileCalled(async () => {
    await stopIssuer();
    const since = new Date();
    asked = await untilAskedInVain(main.server, shortLived, { since, patienceMs: 8_000 });
    goneMs = Date.now() - since.getTime();
    await startIssuer();
    backMs = await untilAllGiven(45_000);
  });
  say(
    `issuer away for ${goneMs} ms: ${asked.length} of ${shortLived.length} asked in vain, all had a new SVID ${Math.round(backMs)} ms after it was back; ${calls} calls, ${accepted} transactions`,
  );
  // those that had just been given one ask again only half its life later
  expect(asked.length).toBeGreaterThan(0);
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
    say(
      `at least ${fewest} SVIDs for each of ${shortLived.length} pods: ${calls} calls, ${accepted} transactions`,
    );
    // each is replaced at half of its life, or a tenth earlier
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
      // the operator calls, and nobody calls it
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
    say(
      `the last SVID ended ${Math.round(endedMs)} ms after the issuer; all were ready ${Math.round(backMs)} ms and the set well ${Math.round(settledMs)} ms after it was back`,
    );
    await whileCalled(() => pause(20_000));
    expect(await restartsOf(main.server)).toEqual(before);
  },
  awayMs + 360_000,
);
