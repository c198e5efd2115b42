import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePorts } from '../../components/standalone/state/ports.ts';
import { type Api, createApi } from '../harness/api.ts';
import { fetchDockets } from '../harness/evidence.ts';
import type { Person } from '../harness/governance.ts';
import { createRegister, signIn, waitOnline } from '../harness/journey.ts';
import { type OwnProcess, startLike, startOf } from '../harness/running-process.ts';
import { environmentOf } from '../harness/service-caller.ts';
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

/** What is left of a lost database is its roles and an empty schema. */
const dropTables = `do $$ declare name text; begin
  for name in select tablename from pg_tables where schemaname = 'blueprint' loop
    execute format('drop table blueprint.%I cascade', name);
  end loop;
  for name in select oid::regprocedure from pg_proc where pronamespace = 'blueprint'::regnamespace loop
    execute 'drop function ' || name || ' cascade';
  end loop; end $$`;

describe.runIf(process.platform === 'linux')('workflows while a service that they need is away', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let api: Api;
  let officer: Person;
  let applicant: Person;
  let root = '';
  let registerId = '';
  let load: WorkflowLoad;
  const loads: WorkflowLoad[] = [];
  const replicas = new Map<string, OwnProcess>();
  /** Through the second processes, and what the one of the blueprint service is started with. */
  let replicaApi: Api;
  let replicaSettings: Readonly<Record<string, string>> = {};

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-workflow-outage-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, args: ['--processes'], env: parts.env, deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    root = (await signIn(api, system.state)).access_token;
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

  const pidOf = (name: string): number => {
    const pid = system.current().processes.find((one) => one.name === name)?.pid;
    if (pid === undefined) throw new Error(`no process ${name}`);
    return pid;
  };

  /** Starts, or starts again, a second process of a service. */
  async function startReplica(name: string, changes: Readonly<Record<string, string>>): Promise<void> {
    replicas.set(name, await startLike(startOf(pidOf(name)), changes));
  }

  /** Stops the process of a service for a while: it answers nothing, and its connections stay. */
  async function suspend(name: string): Promise<void> {
    const pid = pidOf(name);
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
    replicaSettings = {
      ...ports.blueprint,
      CHANCERY_WALLET_GRPC: address('wallet', 'GRPC'),
      CHANCERY_REGISTER_GRPC: address('register', 'GRPC'),
      CHANCERY_REGISTER_HTTPS: address('register', 'HTTPS'),
    };
    await startReplica('blueprint', replicaSettings);
    const port = next();
    await startReplica('gateway', {
      ...ports.gateway,
      CHANCERY_GATEWAY_PORT: port,
      CHANCERY_BLUEPRINT_HTTPS: address('blueprint', 'HTTPS'),
    });
    replicaApi = createApi(`http://127.0.0.1:${port}`);
    const under = begin(replicaApi);
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

  test('a lost database is filled from the ledger: instances read as before, and it is said what is gone', async () => {
    const { token } = applicant;
    const list = '/api/instances?status=Completed&pageSize=50&sort=id';
    const drafts = '/api/blueprints';
    /** What the ledger holds: not who made an instance in which organisation, nor when it was asked for. */
    const read = async () => {
      const { body } = await replicaApi.expect([200, 502, 503], 'GET', list, { token });
      const { items = [], totalCount } = body as { items?: Record<string, unknown>[]; totalCount?: number };
      const kept = items
        .map(({ createdAt, tenantId, ...rest }) => ({
          ...rest,
          hasBoth: [createdAt, tenantId].every(Boolean),
        }))
        .map((item: Readonly<Record<string, unknown>>) => [String(item['id']), item] as const);
      return { totalCount, kept: new Map(kept.toSorted(([a], [b]) => a.localeCompare(b))) };
    };
    const before = await read();
    expect((await replicaApi.expect(200, 'GET', drafts, { token: officer.token })).body).toMatchObject({
      totalCount: 1,
    });
    const pid = pidOf('blueprint');
    const database = new pg.Client({
      connectionString: environmentOf(system.state, 'blueprint')['DATABASE_URL'] ?? '',
    });
    await replicas.get('blueprint')?.kill();
    // The process of the installation would end with an error, and the installation with it.
    process.kill(pid, 'SIGSTOP');
    await database.connect();
    await database.query(dropTables);
    await database.end();
    await startReplica('blueprint', replicaSettings);
    const projection = `/api/admin/workflows/${registerId}/projection`;
    const said = await until('the rows are made from the ledger', recoveryMs, async () => {
      const answer = await replicaApi.expect([200, 502, 503], 'GET', projection, { token: root });
      const { restoredFromLedgerAt } = answer.body as { restoredFromLedgerAt?: string | null };
      return typeof restoredFromLedgerAt === 'string' ? restoredFromLedgerAt : undefined;
    });
    expect(Date.parse(said)).toBeGreaterThan(Date.now() - recoveryMs);
    await until('all instances are there again', recoveryMs, async () =>
      (await read()).totalCount === before.totalCount ? true : undefined,
    );
    expect(await read()).toEqual(before);
    expect((await replicaApi.expect(200, 'GET', drafts, { token: officer.token })).body).toMatchObject({
      totalCount: 0,
    });
    process.kill(pid, 'SIGCONT');
  }, 180_000);
});
