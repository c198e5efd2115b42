import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, createApi } from '../harness/api.ts';
import {
  createRegister,
  createWallet,
  signIn,
  submitThroughRegister,
  type Wallet,
  waitConfirmed,
  waitOnline,
} from '../harness/journey.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { until } from '../harness/wait.ts';
import { processesOf } from './system-processes.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const services = ['tenant', 'wallet', 'register', 'validator-0', 'blueprint', 'credential', 'gateway'];
const victims = full ? services : ['validator-0'];
const startsToBreak = full ? [1, 2, 3, 4, 5, 6, 7] : [4];
const orphanDeadlineMs = 10_000;

describe('local mode with a process for each component', () => {
  let dataDir = '';
  let system: LocalSystem;
  let owner: Wallet;
  let registerId = '';
  let last = '';

  /** Texts in the command line or the environment of each process of this installation. */
  const marks: string[] = [];
  const processes = () => processesOf(marks);
  const begin = () => startSystem({ dataDir, args: ['--processes'] });

  const noneLeft = (): Promise<true> =>
    until('every process has ended', orphanDeadlineMs, async () =>
      processes().length === 0 ? true : undefined,
    ).catch((error: unknown) => {
      throw new Error(
        processes()
          .map(({ command }) => command)
          .join('\n'),
        { cause: error },
      );
    });

  const signedIn = async (): Promise<{ api: Api; token: string }> => {
    const api = createApi(system.state.gatewayUrl);
    return { api, token: (await signIn(api, system.state)).access_token };
  };

  async function seal(): Promise<void> {
    const { api, token } = await signedIn();
    const submission = { registerId, sender: owner.walletAddress, payload: { at: Date.now() } };
    last = await submitThroughRegister(api, token, submission);
    await waitConfirmed(api, token, registerId, last);
  }

  async function continues(): Promise<void> {
    system = await begin();
    const { api, token } = await signedIn();
    await waitConfirmed(api, token, registerId, last);
    await seal();
  }

  beforeAll(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'chancery-processes-'));
    system = await begin();
    marks.push(dataDir, dirname(system.state.spiffeSockets['service-gateway'] ?? dataDir));
    const { api, token } = await signedIn();
    owner = await createWallet(api, token, 'NISTP256');
    registerId = await createRegister(api, token, 'Processes', owner);
    await waitOnline(api, token, registerId);
    await seal();
  });

  afterAll(async () => {
    await system.stop();
    // Kills what a failed test has left.
    for (const { pid } of processes()) process.kill(pid, 'SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  });

  test('local.json lists every process, each its own', () => {
    const listed = system.state.processes;
    expect(listed.map(({ name }) => name).sort()).toEqual([...services, 'local', 'postgres'].sort());
    expect(new Set(listed.map(({ pid }) => pid)).size).toBe(listed.length);
    if (process.platform === 'linux') {
      const seen = processes().map(({ pid }) => pid);
      expect(listed.filter(({ pid }) => !seen.includes(pid))).toEqual([]);
    }
  });

  for (const victim of victims) {
    test(`kill -9 of ${victim} ends all with the reason on the screen; a new start continues`, async () => {
      system.killOne(victim);
      await noneLeft();
      const { code } = await system.stop();
      expect(code).toBe(1);
      expect(system.output()).toContain(`${victim} ended: SIGKILL. Stopping; see`);
      expect(system.output()).toContain('Stopped.');
      expect(existsSync(join(dataDir, 'local.json'))).toBe(false);
      await continues();
    });
  }

  test('kill -9 of the launcher leaves no orphan; a new start continues', async () => {
    system.killOne('local');
    await noneLeft();
    await continues();
  });

  test('Ctrl-C stops every process within five seconds', async () => {
    const { code, tookMs } = await system.stop();
    expect([code, processes()]).toEqual([0, []]);
    expect(tookMs).toBeLessThan(5_000);
  });

  test.skipIf(process.platform !== 'linux')(
    'kill -9 of the launcher during a start leaves no orphan either',
    async () => {
      await system.stop();
      for (const count of startsToBreak) {
        const starting = begin().catch((error: unknown) => error);
        const launcher = await until('the start continues', 30_000, async () => {
          const running = processes();
          const found = running.find(({ command }) => command.includes('standalone/main.ts'));
          return running.length >= count ? found : undefined;
        });
        process.kill(launcher.pid, 'SIGKILL');
        expect(String(await starting)).toMatch(/did not become ready/);
        await noneLeft();
      }
      await continues();
    },
  );
});
