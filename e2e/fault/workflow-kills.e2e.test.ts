import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { freePorts } from '../../components/standalone/state/ports.ts';
import { type Api, createApi } from '../harness/api.ts';
import type { Person } from '../harness/governance.ts';
import { createRegister, signIn, waitConfirmed, waitOnline } from '../harness/journey.ts';
import { type OwnProcess, startLike, startOf } from '../harness/running-process.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';
import { application, createOffice, sitePermit, workflows } from '../harness/workflow.ts';
import { addCommitGates, COMMIT_POINTS, type CommitGates, type CommitPoint } from './commit-gates.ts';
import { type GivenParts, startGivenParts } from './given-parts.ts';

const isFull = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const kills = 5;
const randomKills = 100;
const blueprintId = 'site-permit-approval';
const projection = ['instances', 'steps', 'instance_roles'] as const;

const started = z.looseObject({ operationId: z.string() });
const left = z.object({
  status: z.string(),
  hasDraft: z.boolean(),
  isSigned: z.boolean(),
  isAccepted: z.boolean(),
  txId: z.string().nullable(),
});

/** A first step of an instance, which is asked for with a key of its own. */
interface Application {
  readonly instanceId: string;
  readonly registerId: string;
  readonly key: string;
}

describe.runIf(process.platform === 'linux')('operations of a blueprint service that is killed', () => {
  let dataDir = '';
  let parts: GivenParts;
  let system: LocalSystem;
  let database: pg.Client;
  let gates: CommitGates;
  let applicant: Person;
  let officer: Person;
  /** The folds of the second register are held back; those of the first one continue. */
  let registers: readonly [string, string] = ['', ''];
  let gateway: OwnProcess | undefined;
  let victim: OwnProcess | undefined;
  let victimPorts: Readonly<Record<string, string>> = {};
  /** Through the blueprint service that is killed, and through the one that stays. */
  let doomed: Api;
  let api: Api;
  const begun: Application[] = [];

  const startOfOne = (name: string) =>
    startOf(system.current().processes.find((one) => one.name === name)?.pid);

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-kills-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, args: ['--processes'], env: parts.env, deadlineMs: 90_000 });
    database = new pg.Client({ connectionString: parts.env.DATABASE_URL });
    await database.connect();
    gates = await addCommitGates(parts.env.DATABASE_URL);
    api = createApi(system.state.gatewayUrl);
    const root = (await signIn(api, system.state)).access_token;
    ({ applicant, officer } = await createOffice(api, root));
    registers = [await prepareRegister('North'), await prepareRegister('South')];
    const [ops = '', https = '', grpc = '', gatewayOps = '', port = ''] = (await freePorts(5)).map(String);
    victimPorts = { CHANCERY_OPS_PORT: ops, CHANCERY_HTTPS_PORT: https, CHANCERY_GRPC_PORT: grpc };
    gateway = await startLike(startOfOne('gateway'), {
      CHANCERY_OPS_PORT: gatewayOps,
      CHANCERY_GATEWAY_PORT: port,
      CHANCERY_BLUEPRINT_HTTPS: `127.0.0.1:${https}`,
    });
    doomed = createApi(`http://127.0.0.1:${port}`);
  }, 300_000);
  afterAll(async () => {
    await gateway?.kill();
    await victim?.kill();
    await gates.end();
    await database.end();
    await system.stop();
    await parts.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function prepareRegister(title: string): Promise<string> {
    const { token, wallet } = officer;
    const registerId = await createRegister(api, token, { title, devMode: false }, wallet);
    await waitOnline(api, token, registerId);
    const wallets = { 'planning-office': wallet.walletAddress, 'safety-board': wallet.walletAddress };
    const site = { ...sitePermit(wallets), id: blueprintIdOn(registerId) };
    await workflows(api).publish(officer, site, registerId);
    return registerId;
  }
  const blueprintIdOn = (registerId: string) => `${blueprintId}-${registerId.slice(0, 8)}`;

  async function begin(registerId: string): Promise<Application> {
    const instanceId = await workflows(api).start(applicant, blueprintIdOn(registerId), registerId);
    const made = { instanceId, registerId, key: randomUUID() };
    begun.push(made);
    return made;
  }

  /** Asks for the first step; undefined when the connection ended, or the gateway reached no service. */
  async function apply(through: Api, one: Application): Promise<string | undefined> {
    const { instanceId, registerId, key } = one;
    const payload = { ...application, floorAreaM2: 40 };
    const step = {
      instanceId,
      registerId,
      blueprintId: blueprintIdOn(registerId),
      actionId: 0,
      payload,
      key,
    };
    const answer = await workflows(through)
      .take(applicant, step)
      .catch(() => undefined);
    if (answer === undefined || answer.status >= 500) return undefined;
    expect([answer.status, answer.body]).toMatchObject([202, { instanceId }]);
    return started.parse(answer.body).operationId;
  }

  /** What the database holds of the operation of an instance. */
  async function leftOf({ instanceId }: Application) {
    const { rows } = await database.query(
      `select status, draft is not null as "hasDraft", submission is not null as "isSigned",
        is_accepted as "isAccepted", tx_id as "txId" from blueprint.operations where instance_id = $1`,
      [instanceId],
    );
    return z.array(left).parse(rows);
  }

  async function isFolded({ instanceId }: Application): Promise<boolean> {
    const { rowCount } = await database.query('select 1 from blueprint.steps where instance_id = $1', [
      instanceId,
    ]);
    return rowCount !== 0;
  }

  /** What a kill at a point has to leave. */
  async function checkLeft(point: CommitPoint, one: Application): Promise<void> {
    const rows = await leftOf(one);
    if (point === 'operation') {
      expect(rows).toEqual([]);
      return;
    }
    const [row] = rows;
    expect(row).toMatchObject({
      hasDraft: point !== 'envelope',
      isSigned: point === 'acceptance' || point === 'fold',
      isAccepted: point === 'fold',
    });
    if (point === 'acceptance' || point === 'fold')
      await waitConfirmed(api, officer.token, one.registerId, row?.txId ?? '');
    if (point === 'fold') expect(await isFolded(one)).toBe(false);
  }

  async function killAtEachPoint(): Promise<void> {
    victim = await startLike(startOfOne('blueprint'), victimPorts);
    await gates.close();
    const chosen = await Promise.all(
      COMMIT_POINTS.map(async (point) => {
        const one = await begin(point === 'fold' ? registers[1] : registers[0]);
        return { point, one };
      }),
    );
    for (const { point, one } of chosen) await gates.choose(one.instanceId, point);
    const answers = chosen.map(async ({ one }) => ({ one, id: await apply(doomed, one) }));
    await until('an operation waits at each point', 30_000, async () =>
      (await gates.waiting()) >= COMMIT_POINTS.length ? true : undefined,
    );
    for (const { point, one } of chosen) await checkLeft(point, one);
    await victim.kill();
    await gates.open();
    const unanswered = (await Promise.all(answers)).filter(({ id }) => id === undefined);
    expect(unanswered.map(({ one }) => one)).toEqual(
      chosen.flatMap(({ point, one }) => (point === 'operation' ? [one] : [])),
    );
    for (const { one } of unanswered) expect(await apply(api, one)).toBeDefined();
  }

  async function killAtRandom(): Promise<void> {
    victim = await startLike(startOfOne('blueprint'), victimPorts);
    const chosen = await Promise.all(COMMIT_POINTS.map((_, n) => begin(registers[n % 2] ?? '')));
    const answers = chosen.map(async (one) => ({ one, id: await apply(doomed, one) }));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_000));
    await victim.kill();
    for (const { one, id } of await Promise.all(answers))
      if (id === undefined) expect(await apply(api, one)).toBeDefined();
  }

  /** Each step that was asked for is there once. */
  async function checkDone(): Promise<void> {
    for (const one of begun) {
      const { txId } = await until(`the operation of ${one.instanceId} is done`, 40_000, async () => {
        const rows = await leftOf(one);
        expect(rows).toHaveLength(1);
        return rows[0]?.status === 'Complete' || rows[0]?.status === 'Failed' ? rows[0] : undefined;
      });
      const instance = await workflows(api).read(applicant, one.instanceId);
      expect(instance).toMatchObject({ version: 1, currentActionIds: [2], lastTransactionId: txId });
    }
    for (const registerId of registers) {
      const path = `/api/registers/${registerId}/transactions?pageSize=1`;
      const { body } = await api.expect(200, 'GET', path, { token: officer.token });
      const own = begun.filter((each) => each.registerId === registerId);
      // The genesis and the publication.
      expect(body).toMatchObject({ totalCount: 2 + own.length });
    }
  }

  async function rowsOf(client: pg.Client): Promise<readonly unknown[]> {
    const tables: unknown[] = [];
    for (const table of projection) {
      const { rows } = await client.query(
        `select to_jsonb(t) as row from blueprint.${table} t order by t::text`,
      );
      tables.push(rows);
    }
    return tables;
  }

  /** A service with an empty database makes the same rows from the ledger. */
  async function checkRebuilt(name: string): Promise<void> {
    const own = startOfOne('blueprint');
    const { DATABASE_URL: url = '' } = own.env;
    const role = decodeURIComponent(new URL(url).username);
    await database.query(`create database ${name} owner "${role}"`);
    const inRebuilt = (text: string) => Object.assign(new URL(text), { pathname: `/${name}` }).toString();
    victim = await startLike(own, { ...victimPorts, DATABASE_URL: inRebuilt(url) });
    const rebuilt = new pg.Client({ connectionString: inRebuilt(parts.env.DATABASE_URL) });
    await rebuilt.connect();
    try {
      const expected = await rowsOf(database);
      await expect.poll(() => rowsOf(rebuilt), { timeout: 60_000 }).toEqual(expected);
      const { rows } = await rebuilt.query('select count(*)::int as count from blueprint.operations');
      expect(rows).toEqual([{ count: 0 }]);
    } finally {
      await rebuilt.end();
      await victim.kill();
    }
  }

  test(`killed ${kills} times at each commit: every operation is done once`, async () => {
    for (let kill = 0; kill < kills; kill += 1) {
      await killAtEachPoint();
      if (!isFull) continue;
      await checkDone();
      await checkRebuilt(`rebuilt_${kill}`);
    }
    await checkDone();
  }, 600_000);

  test.runIf(isFull)(
    `killed ${randomKills} times at random: every operation is done once`,
    async () => {
      for (let kill = 0; kill < randomKills; kill += 1) await killAtRandom();
      await checkDone();
    },
    3_600_000,
  );

  test('a service with an empty database reads the same instances from the ledger', async () => {
    await checkRebuilt('rebuilt');
  }, 120_000);
});
