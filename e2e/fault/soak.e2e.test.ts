import { spawnSync } from 'node:child_process';
import { createWriteStream, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Api, createApi } from '../harness/api.ts';
import { createRegister, createWallet, signIn, waitOnline } from '../harness/journey.ts';
import { fetchSvid } from '../harness/service-token.ts';
import { type LocalSystem, startSystem } from '../harness/system.ts';
import { setStatus } from '../harness/validation.ts';
import { until } from '../harness/wait.ts';
import { heapAtRest } from '../perf/inspector.ts';
import { PacedLoad } from './paced-load.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const minutes = 10;
const minuteMs = 60_000;
const verifier = fileURLToPath(new URL('../independent/export_verify.py', import.meta.url));
const ownPython = fileURLToPath(new URL('../../dist/venv/bin/python3', import.meta.url));
const python = existsSync(ownPython) ? ownPython : 'python3';
/** Services that run all the time; a validator that was killed begins anew. */
const lasting = ['register', 'wallet', 'tenant', 'gateway'];

const say = (line: string): boolean => process.stdout.write(`${line}\n`);
const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Ledger A33: half of the peak for minutes, a random validator killed in each of them, and a checker of others' make. */
describe.runIf(full)('a long run at half of the peak', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'chancery-soak-'));
  let system: LocalSystem;
  let api: Api;
  let token = '';
  let registerId = '';
  let pools: readonly Pool[] = [];

  const renew = async (): Promise<void> => {
    token = (await signIn(api, system.state)).access_token;
  };
  const stored = async (): Promise<number> => {
    const path = `/api/registers/${registerId}/transactions?pageSize=1`;
    const answer = await api.expect(200, 'GET', path, { token });
    return (answer.body as { totalCount: number }).totalCount;
  };
  const load = (perSecond: number): PacedLoad =>
    new PacedLoad({ registerId, perSecond, pools, token: () => token });
  const memoryMiB = async (): Promise<ReadonlyMap<string, number>> => {
    const found = new Map<string, number>();
    for (const { name, pid } of system.current().processes.filter((each) => lasting.includes(each.name))) {
      const { usedMiB, outsideMiB } = await heapAtRest(pid);
      found.set(name, usedMiB + outsideMiB);
    }
    return found;
  };

  beforeAll(async () => {
    system = await startSystem({ dataDir, args: ['--processes', '--validators', '4'], deadlineMs: 90_000 });
    api = createApi(system.state.gatewayUrl);
    await renew();
    const owner = await createWallet(api, token, 'ED25519');
    registerId = await createRegister(api, token, 'A long run', owner);
    await waitOnline(api, token, registerId);
    const svid = await fetchSvid(system.state, 'service-operator');
    pools = system.state.validators.map(
      ({ https }) =>
        new Pool(`https://${https}`, {
          connections: 16,
          connect: { ...svid, checkServerIdentity: () => undefined },
        }),
    );
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.destroy()));
    await system.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Transactions a second that are sealed when more are offered than can be. */
  async function peak(): Promise<{ readonly perSecond: number; readonly accepted: readonly string[] }> {
    const burst = load(20_000);
    await rest(5_000);
    const [before, at] = [await stored(), performance.now()];
    await rest(10_000);
    const perSecond = ((await stored()) - before) / ((performance.now() - at) / 1000);
    await burst.stop();
    return { perSecond, accepted: burst.accepted };
  }

  /** Kills one validator and has it run again ten seconds later. */
  async function loseOne(): Promise<string> {
    const names = system.state.validators.map(({ validatorId }) => validatorId);
    const victim = names[Math.floor(Math.random() * names.length)] ?? '';
    system.killOne(victim);
    await rest(10_000);
    await system.again(victim);
    await until(`${victim} is back`, minuteMs, async () =>
      (await setStatus(api, token, registerId)).operational === names.length ? true : undefined,
    );
    return victim;
  }

  test('nothing is lost or doubled, every docket holds offline, and memory stays where it was', async () => {
    const { perSecond, accepted: first } = await peak();
    say(`peak ${perSecond.toFixed(0)} sealed a second; ${minutes} minutes at half of it`);
    const steady = load(perSecond / 2);
    let settled: ReadonlyMap<string, number> | undefined;
    for (let minute = 1; minute <= minutes; minute += 1) {
      const begunAt = performance.now();
      await renew();
      const victim = await loseOne();
      await rest(minuteMs - (performance.now() - begunAt));
      say(`minute ${minute}: ${victim} was killed; ${await stored()} sealed, ${steady.again} offered again`);
      if (minute === 2) settled = await memoryMiB();
    }
    const inTheEnd = await memoryMiB();
    await steady.stop();
    expect(steady.unexpected.slice(0, 3)).toEqual([]);
    say(`${steady.accepted.length} accepted; ${steady.skipped} not sent, as too many were under way`);
    expect(steady.accepted.length).toBeGreaterThan(minutes * 1_000);

    const accepted = [...first, ...steady.accepted];
    await until('all that was accepted is sealed', minuteMs, async () =>
      (await stored()) >= accepted.length + 1 ? true : undefined,
    );
    const checked = spawnSync(python, ['-B', verifier, ...(await written(accepted))], { encoding: 'utf8' });
    say(checked.stdout);
    expect(checked).toMatchObject({ status: 0, stdout: expect.stringMatching(/^2 passed, 0 failed$/m) });

    for (const [name, before] of settled ?? []) {
      const after = inTheEnd.get(name) ?? Number.POSITIVE_INFINITY;
      say(`${name}: ${before.toFixed(1)} MiB after 2 minutes, ${after.toFixed(1)} MiB in the end`);
      expect(after, `memory of ${name}`).toBeLessThan(before * 1.05 + 2);
    }
    // the peak, the minutes, and the checker that reads all of it
  }, 1_800_000);

  /** The export and the accepted ids as files: the arguments of the checker. */
  async function written(accepted: readonly string[]): Promise<readonly string[]> {
    const [exported, ids] = [join(dataDir, 'export.jsonl'), join(dataDir, 'accepted.txt')];
    writeFileSync(ids, `${accepted.join('\n')}\n`);
    await renew();
    const answer = await fetch(new URL(`/api/registers/${registerId}/export`, system.state.gatewayUrl), {
      headers: { authorization: `Bearer ${token}` },
    });
    if (!answer.ok || answer.body === null) throw new Error(`the export answered ${answer.status}`);
    await pipeline(Readable.fromWeb(answer.body), createWriteStream(exported));
    return [exported, '--accepted', ids];
  }
});
