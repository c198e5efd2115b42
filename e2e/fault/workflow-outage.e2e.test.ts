import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { fetchDockets } from '../harness/evidence.ts';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, signIn, waitOnline } from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';
import { sitePermit, workflows } from '../harness/workflow.ts';
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

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-workflow-outage-'));
    parts = await startGivenParts();
    system = await startSystem({ dataDir, args: ['--processes'], env: parts.env, deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    const root = (await signIn(api, system.state)).access_token;
    const organization = await createOrganization(api, root, 'planning');
    const person = (name: string, role: 'Administrator' | 'User') =>
      createPerson(api, root, organization, { name, role });
    officer = await person('officer', 'Administrator');
    applicant = await person('applicant', 'User');
    const { token, wallet } = officer;
    registerId = await createRegister(api, token, { title: 'Permits', devMode: false }, wallet);
    await waitOnline(api, token, registerId);
    const site = sitePermit({
      'planning-office': wallet.walletAddress,
      'safety-board': wallet.walletAddress,
    });
    await workflows(api).publish(officer, site, registerId);
    load = new WorkflowLoad({ api, registerId, blueprintId, applicant, officer, workers });
  }, 300_000);
  afterAll(async () => {
    await load.stop();
    await system.stop();
    await parts.remove();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Waits until instances that begin from now on are completed. */
  async function completes(what: string): Promise<void> {
    const goal = load.completed.size + 2 * workers;
    await until(what, recoveryMs, async () =>
      load.completed.size >= goal || load.unexpected.length > 0 ? true : undefined,
    );
    expect(load.unexpected).toEqual([]);
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

  test('afterwards each instance is completed by its own three steps, and the register has no other', async () => {
    await load.stop();
    expect(load.unexpected).toEqual([]);
    const dockets = await fetchDockets(api, officer.token, `/api/registers/${registerId}`);
    const sealed = dockets.flatMap(({ transactionIds }) => transactionIds);
    const steps = [...load.completed.values()].flat();
    expect(new Set(steps).size).toBe(3 * load.completed.size);
    // Besides the steps, the register has its genesis and the publication.
    expect(sealed.length).toBe(2 + steps.length);
    expect(steps.filter((txId) => !sealed.includes(txId))).toEqual([]);
    const query = `status=Completed&pageSize=1`;
    const { body } = await api.expect(200, 'GET', `/api/instances?${query}`, { token: applicant.token });
    expect(z.looseObject({ totalCount: z.number() }).parse(body).totalCount).toBe(load.completed.size);
  }, 120_000);
});
