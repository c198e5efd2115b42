import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpTransportType, type HubConnection, HubConnectionBuilder, LogLevel } from '@microsoft/signalr';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Api, createApi } from '../harness/api.ts';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, signIn, submitThroughRegister, waitOnline } from '../harness/journey.ts';
import {
  GATEWAY_PORTS,
  type OwnProcess,
  SERVICE_PORTS,
  startLike,
  startOf,
  startOnFreePorts,
} from '../harness/running-process.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { inParallel, until } from '../harness/wait.ts';

const isFull = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const connectionsPerUser = 20;
const users = isFull ? 50 : 2;
const transactions = isFull ? 50 : 20;
const targets = ['DocketSealed', 'RegisterHeightUpdated', 'TransactionConfirmed'];

/** A client that connects again by itself, and asks for what it missed. */
interface Follower {
  readonly connection: HubConnection;
  /** Transactions and dockets in the order of their first signals. */
  readonly transactions: Set<string>;
  readonly dockets: Set<number>;
  reconnections: number;
  readonly failures: unknown[];
}

async function follow(url: string, token: string, registerId: string): Promise<Follower> {
  const connection = new HubConnectionBuilder()
    .withUrl(url, { accessTokenFactory: () => token, transport: HttpTransportType.WebSockets })
    .withAutomaticReconnect({ nextRetryDelayInMilliseconds: () => 500 + Math.random() * 1_500 })
    .configureLogging(LogLevel.None)
    .build();
  const follower: Follower = {
    connection,
    transactions: new Set(),
    dockets: new Set(),
    reconnections: 0,
    failures: [],
  };
  let since = new Date().toISOString();
  for (const target of targets) {
    connection.on(target, (_registerId: string, subject: string | number, occurredAt: string) => {
      since = occurredAt;
      if (target === 'TransactionConfirmed') follower.transactions.add(String(subject));
      if (target === 'DocketSealed') follower.dockets.add(Number(subject));
    });
  }
  connection.onreconnected(() => {
    follower.reconnections += 1;
    // A connection that ends during the call is opened again, and subscribes again.
    connection.invoke('SubscribeToRegister', registerId, since).catch((error: unknown) => {
      follower.failures.push(error);
    });
  });
  await connection.start();
  await connection.invoke('SubscribeToRegister', registerId, since);
  return follower;
}

describe.runIf(process.platform === 'linux')('clients of a register service that is killed', () => {
  let dataDir = '';
  let system: LocalSystem;
  let api: Api;
  let owner: Person;
  let tokens: readonly string[] = [];
  let registerId = '';
  let replica: OwnProcess;
  let gateway: OwnProcess;
  let ports: Readonly<Record<string, string>> = {};
  let url = '';
  let submitted = 0;
  const startOfOne = (name: string) =>
    startOf(system.current().processes.find((one) => one.name === name)?.pid);

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-hub-clients-'));
    system = await startSystem({ dataDir, args: ['--processes'], deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    const root = (await signIn(api, system.state)).access_token;
    const organization = await createOrganization(api, root, 'followers');
    owner = await createPerson(api, root, organization, { name: 'owner', role: 'Administrator' });
    const people = await inParallel(Array.from({ length: users }), 4, (_, n) =>
      createPerson(api, root, organization, { name: `reader-${n}`, role: 'User' }),
    );
    tokens = people.map(({ token }) => token);
    registerId = await createRegister(api, owner.token, 'Followed', owner.wallet);
    await waitOnline(api, owner.token, registerId);
    const placed = await startOnFreePorts(startOfOne('register'), SERVICE_PORTS);
    replica = placed;
    ports = placed.ports;
    const second = await startOnFreePorts(startOfOne('gateway'), GATEWAY_PORTS, () => ({
      CHANCERY_REGISTER_HTTPS: `127.0.0.1:${ports['CHANCERY_HTTPS_PORT']}`,
    }));
    gateway = second;
    url = `http://127.0.0.1:${second.ports['CHANCERY_GATEWAY_PORT']}/hubs/register`;
  }, 300_000);
  afterAll(async () => {
    await gateway.kill();
    await replica.kill();
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function submit(count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) {
      const submission = { registerId, sender: owner.wallet.walletAddress, payload: { serial: submitted++ } };
      ids.push(await submitThroughRegister(api, owner.token, submission));
    }
    return ids;
  }

  test(`kill -9 under ${users * connectionsPerUser} clients: each of them gets every signal`, async () => {
    const places = tokens.flatMap((token) => Array.from({ length: connectionsPerUser }, () => token));
    const followers = await inParallel(places, 16, (token) => follow(url, token, registerId));
    onTestFinished(async () => void (await inParallel(followers, 50, ({ connection }) => connection.stop())));
    const heardBy = (ids: readonly string[]) => (one: Follower) =>
      ids.every((id) => one.transactions.has(id));
    const allHear = (ids: readonly string[]) =>
      until('every client has every transaction', 120_000, async () =>
        followers.every(heardBy(ids)) ? true : undefined,
      );

    const before = await submit(transactions);
    await allHear(before);
    const during = submit(transactions);
    await replica.kill();
    const missed = [...(await during), ...(await submit(transactions))];
    replica = await startLike(startOfOne('register'), ports);
    await until('every client is connected again', 120_000, async () =>
      followers.every(({ reconnections, failures }) => reconnections > failures.length) ? true : undefined,
    );
    const after = await submit(transactions);
    const expected = [...before, ...missed, ...after];
    await allHear(expected);
    for (const { dockets } of followers) {
      const numbers = [...dockets];
      const first = numbers[0] ?? 0;
      expect(numbers).toEqual(numbers.map((_, place) => first + place));
    }
  }, 600_000);
});
