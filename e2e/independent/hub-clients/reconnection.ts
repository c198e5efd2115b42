import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as library from '@microsoft/signalr';
import { type Api, createApi } from '../../harness/api.ts';
import { type Balancer, startBalancer } from '../../harness/balancer.ts';
import { TRANSPORTS, type Transport } from '../../harness/hub.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitOnline,
} from '../../harness/journey.ts';
import { startSystem } from '../../harness/system.ts';
import { until } from '../../harness/wait.ts';
import { type Counts, countChecks, failureOf } from '../programs.ts';
import { startChromium } from './chromium.ts';
import { follow, type Report } from './follow.ts';
import { createPage, PAGE_PATH, type Page } from './page.ts';
import { type Replica, startReplica } from './replicas.ts';

/** Clients of the register hub, in Node and in Chromium, whose replica is killed. */

const deadlineMs = 60_000;
const batch = 3;

/** Two replicas behind a balancer, which also serves the page of the browser. */
interface World {
  readonly api: Api;
  readonly token: string;
  readonly wallet: Wallet;
  readonly registerId: string;
  readonly replicas: readonly Replica[];
  readonly balancer: Balancer;
  readonly page: Page;
}

/** A client that follows the register of the world. */
interface Client {
  readonly reports: readonly Report[];
  /** What helps to understand a failure. */
  output(): string;
  stop(): Promise<void>;
}

type Start = (world: World, transport: Transport) => Promise<Client>;

const inNode: Start = async ({ balancer, token, registerId }, transport) => {
  const reports: Report[] = [];
  const options = { url: `${balancer.url}/hubs/register`, token, registerId, transport };
  const connection = await follow(library, options, (report) => void reports.push(report));
  return { reports, output: () => '', stop: () => connection.stop() };
};

const inChromium: Start = async ({ balancer, page, token, registerId }, transport) => {
  const reports: Report[] = [];
  page.expect({ token, registerId, transport }, (report) => void reports.push(report));
  const { output, stop } = await startChromium(`${balancer.url}${PAGE_PATH}`);
  return { reports, output, stop };
};

const subjectsOf = (reports: readonly Report[], target: string) => [
  ...new Set(
    reports.flatMap((report) =>
      report.kind === 'signal' && report.target === target ? [report.args[1]] : [],
    ),
  ),
];
const subscriptionsOf = (reports: readonly Report[]) =>
  reports.flatMap((report) => (report.kind === 'subscribed' ? [report] : []));

async function submit({ api, token, wallet, registerId }: World): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < batch; n += 1) {
    const submission = { registerId, sender: wallet.walletAddress, payload: { serial: randomUUID() } };
    ids.push(await submitThroughRegister(api, token, submission));
  }
  return ids;
}

/** The replica at which a client's connection was opened since its counter was read. */
async function holderOf({ replicas }: World, before: readonly number[], transport: Transport) {
  const after = await Promise.all(replicas.map((replica) => replica.opened(transport)));
  const opened = after.map((count, place) => count - (before[place] ?? 0));
  if (opened.reduce((sum, count) => sum + count, 0) !== 1) {
    throw new Error(`the replicas opened ${opened.join(' and ')} connections over ${transport}, not one`);
  }
  return opened.indexOf(1);
}

/** Kills the replica of a client while transactions are sealed, and judges what the client reports. */
async function judge(world: World, start: Start, transport: Transport): Promise<Record<string, boolean>> {
  const { replicas, balancer } = world;
  const before = await Promise.all(replicas.map((replica) => replica.opened(transport)));
  const counted = [...balancer.counts];
  const client = await start(world, transport);
  const { reports } = client;
  const waitFor = (what: string, isTrue: () => boolean) =>
    until(what, deadlineMs, async () => (isTrue() ? true : undefined));
  const hasHeard = (ids: readonly string[]) => {
    const heard = subjectsOf(reports, 'TransactionConfirmed');
    return ids.every((id) => heard.includes(id));
  };
  let holder = -1;
  try {
    await waitFor('the subscription', () => subscriptionsOf(reports).length === 1);
    holder = await holderOf(world, before, transport);
    const first = await submit(world);
    await waitFor('the first transactions', () => hasHeard(first));
    const isBalanced = balancer.counts.every((count, place) => count > (counted[place] ?? 0));
    await replicas[holder]?.kill();
    balancer.exclude(holder, true);
    const missed = await submit(world);
    await waitFor('the subscription at the other replica', () => subscriptionsOf(reports).length > 1);
    const last = await submit(world);
    const expected = [...first, ...missed, ...last];
    await waitFor('every transaction', () => hasHeard(expected));
    const [{ replayed, complete } = { replayed: 0, complete: false }] = subscriptionsOf(reports).slice(1);
    // A replay begins a little before the instant that was asked for, so it may tell what was before the client came.
    const heard = subjectsOf(reports, 'TransactionConfirmed').filter((id) => expected.includes(String(id)));
    const all = subjectsOf(reports, 'DocketSealed').map(Number);
    const dockets = all.filter((one) => one >= (all[0] ?? 0));
    return {
      'its requests reach both replicas': isBalanced,
      'it loses the connection to the killed replica': reports.some(({ kind }) => kind === 'reconnecting'),
      'it gets what it missed, whole': replayed > 0 && complete,
      'it hears every transaction in its order': heard.join() === expected.join(),
      'dockets come in order, without a gap': dockets.every(
        (one, place) => one === (dockets[0] ?? 0) + place,
      ),
      'it reports no failure': reports.every(({ kind }) => kind !== 'failed'),
    };
  } catch (cause) {
    throw new Error(`reports: ${JSON.stringify(reports)}\n${client.output()}`, { cause });
  } finally {
    await client.stop();
    await restore(world, holder);
  }
}

/** Starts a replica again, if it was killed. */
async function restore({ replicas, balancer }: World, place: number): Promise<void> {
  const replica = replicas[place];
  if (replica === undefined) return;
  await replica.kill();
  await replica.restart();
  balancer.exclude(place, false);
}

async function judgeAll(world: World): Promise<Counts[]> {
  const all: Counts[] = [];
  for (const [name, start] of [
    ['Node', inNode],
    ['Chromium', inChromium],
  ] as const) {
    for (const transport of TRANSPORTS) {
      const title = `@microsoft/signalr in ${name} over ${transport}`;
      all.push(
        await judge(world, start, transport).then((checks) => countChecks(title, checks), failureOf(title)),
      );
    }
  }
  const browser = world.page.browser();
  return [...all, countChecks(browser, { 'the browser is Chromium': /HeadlessChrome\/\d/.test(browser) })];
}

/** Follows a register in Node and in Chromium over each transport, on a local mode of processes. */
export async function followThroughReplicas(): Promise<Counts[]> {
  if (process.platform !== 'linux') {
    process.stdout.write('\n@microsoft/signalr\nskipped: not Linux\n');
    return [];
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-hub-clients-'));
  const { state, stop } = await startSystem({ dataDir, args: ['--processes'], deadlineMs: 120_000 });
  await using ending = new AsyncDisposableStack();
  ending.defer(() => rmSync(dataDir, { recursive: true, force: true }));
  ending.defer(async () => void (await stop()));
  const api = createApi(state.gatewayUrl);
  const { access_token: token } = await signIn(api, state);
  const wallet = await createWallet(api, token, 'ED25519');
  const registerId = await createRegister(api, token, 'Followed through replicas', wallet);
  await waitOnline(api, token, registerId);
  const replicas: Replica[] = [];
  for (let n = 0; n < 2; n += 1) {
    const replica = await startReplica(state);
    ending.defer(() => replica.stop());
    replicas.push(replica);
  }
  const page = createPage();
  const balancer = await startBalancer(
    replicas.map(({ gatewayPort }) => gatewayPort),
    page.ownPages,
  );
  ending.defer(() => balancer.stop());
  return await judgeAll({ api, token, wallet, registerId, replicas, balancer, page });
}
