import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePorts } from '../../components/standalone/state/ports.ts';
import { type Api, createApi } from '../harness/api.ts';
import { fetchDockets } from '../harness/evidence.ts';
import type { Person } from '../harness/governance.ts';
import { createRegister, signIn, waitOnline } from '../harness/journey.ts';
import { type OwnProcess, startLike, startOf } from '../harness/running-process.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';
import { createOffice, sitePermit, workflows } from '../harness/workflow.ts';
import { type GivenParts, startGivenParts } from './given-parts.ts';
import { WorkflowLoad } from './workflow-load.ts';

const rounds = process.env['CHANCERY_TEST_LENGTH'] === 'full' ? 10 : 1;
/** Longer than a call of the blueprint service waits for an answer. */
const outageMs = 10_000;
const recoveryMs = 60_000;
const workers = 4;
const blueprintId = 'site-permit-approval';

describe.runIf(process.platform === 'linux')('workflows while a service that they need is away', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let api: Api;
  let officer: Person;
  let applicant: Person;
  let registerId = '';
  let load: WorkflowLoad;
  const loads: WorkflowLoad[] = [];
  const replicas = new Map<string, OwnProcess>();

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-workflow-outage-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, args: ['--processes'], env: parts.env, deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    const root = (await signIn(api, system.state)).access_token;
    ({ applicant, officer } = await createOffice(api, root));
    const { token, wallet } = officer;
    registerId = await createRegister(api, token, { title: 'Permits', devMode: false }, wallet);
    await waitOnline(api, token, registerId);
    const site = sitePermit({
      'planning-office': wallet.walletAddress,
      'safety-board': wallet.walletAddress,
    });
    await workflows(api).publish(officer, site, registerId);
    load = begin(api);
  }, 300_000);
  afterAll(async () => {
    await Promise.allSettled(loads.map((each) => each.stop()));
    for (const process of replicas.values()) await process.kill();
    await system.stop();
    await parts.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  function begin(through: Api): WorkflowLoad {
    const begun = new WorkflowLoad({ api: through, registerId, blueprintId, applicant, officer, workers });
    loads.push(begun);
    return begun;
  }

  /** Waits until instances that begin from now on are completed. */
  async function completes(what: string, under = load): Promise<void> {
    const goal = under.completed.size + 2 * workers;
    await until(what, recoveryMs, async () =>
      under.completed.size >= goal || under.unexpected.length > 0 ? true : undefined,
    );
    expect(under.unexpected).toEqual([]);
  }

  const startOfOne = (name: string) =>
    startOf(system.current().processes.find((one) => one.name === name)?.pid);

  /** Starts, or starts again, a second process of a service. */
  async function startReplica(name: string, changes: Readonly<Record<string, string>>): Promise<void> {
    replicas.set(name, await startLike(startOfOne(name), changes));
  }

  /** Stops the process of a service for a while: it answers nothing, and its connections stay. */
  async function suspend(name: string): Promise<void> {
    const pid = system.current().processes.find((one) => one.name === name)?.pid;
    if (pid === undefined) throw new Error(`no process ${name}`);
    process.kill(pid, 'SIGSTOP');
    try {
      const { size } = load.completed;
      await pause(outageMs);
      // Each worker may have been behind the last answer that it needed.
      expect(load.completed.size - size).toBeLessThanOrEqual(workers);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  }

  for (const service of ['wallet', 'register'] as const) {
    test(`the ${service} service does not answer for a while ${rounds} times: workflows continue`, async () => {
      for (let round = 0; round < rounds; round += 1) {
        await completes('permits are collected');
        await suspend(service);
        await completes('permits are collected again');
      }
    }, 1_200_000);
  }

  test(`PostgreSQL is killed and starts again ${rounds} times: workflows continue`, async () => {
    for (let round = 0; round < rounds; round += 1) {
      await completes('permits are collected');
      await parts.crashDatabase();
      const { refused } = load;
      await until('requests are refused', recoveryMs, async () =>
        load.refused > refused ? true : undefined,
      );
      await parts.startDatabase();
      await completes('permits are collected again');
    }
  }, 1_200_000);

  test(`a wallet and a register service are killed and start again ${rounds} times: workflows continue`, async () => {
    await load.stop();
    const free = (await freePorts(13)).map(String);
    const next = () => free.pop() ?? '';
    const at = () => ({
      CHANCERY_OPS_PORT: next(),
      CHANCERY_HTTPS_PORT: next(),
      CHANCERY_GRPC_PORT: next(),
    });
    const ports = { wallet: at(), register: at(), blueprint: at(), gateway: at() };
    const address = (name: keyof typeof ports, port: 'GRPC' | 'HTTPS') =>
      `127.0.0.1:${ports[name][`CHANCERY_${port}_PORT`]}`;
    await startReplica('wallet', ports.wallet);
    await startReplica('register', ports.register);
    await startReplica('blueprint', {
      ...ports.blueprint,
      CHANCERY_WALLET_GRPC: address('wallet', 'GRPC'),
      CHANCERY_REGISTER_GRPC: address('register', 'GRPC'),
      CHANCERY_REGISTER_HTTPS: address('register', 'HTTPS'),
    });
    const port = next();
    await startReplica('gateway', {
      ...ports.gateway,
      CHANCERY_GATEWAY_PORT: port,
      CHANCERY_BLUEPRINT_HTTPS: address('blueprint', 'HTTPS'),
    });
    const under = begin(createApi(`http://127.0.0.1:${port}`));
    for (let round = 0; round < rounds; round += 1) {
      for (const name of ['wallet', 'register'] as const) {
        await completes('permits are collected', under);
        const { refused } = under;
        await replicas.get(name)?.kill();
        await until('requests are refused', recoveryMs, async () =>
          under.refused > refused ? true : undefined,
        );
        await startReplica(name, ports[name]);
        await completes('permits are collected again', under);
      }
    }
  }, 1_200_000);

  test('afterwards each instance is completed by its own three steps, and the register has no other', async () => {
    await Promise.all(loads.map((each) => each.stop()));
    expect(loads.flatMap(({ unexpected }) => unexpected)).toEqual([]);
    const completed = loads.flatMap((each) => [...each.completed]);
    const dockets = await fetchDockets(api, officer.token, `/api/registers/${registerId}`);
    const sealed = dockets.flatMap(({ transactionIds }) => transactionIds);
    const steps = completed.flatMap(([, txIds]) => txIds);
    expect(new Set(steps).size).toBe(3 * completed.length);
    // Besides the steps, the register has its genesis and the publication.
    expect(sealed.length).toBe(2 + steps.length);
    expect(steps.filter((txId) => !sealed.includes(txId))).toEqual([]);
    const path = '/api/instances?status=Completed&pageSize=1';
    const { body } = await api.expect(200, 'GET', path, { token: applicant.token });
    expect(body).toMatchObject({ totalCount: completed.length });
  }, 120_000);
});
