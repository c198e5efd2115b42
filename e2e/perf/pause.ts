import { setTimeout as rest } from 'node:timers/promises';
import { z } from 'zod';
import { setStatus } from '../harness/validation.ts';
import { until } from '../harness/wait.ts';
import { post, presign, validatePath } from './load.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

const kills = 3;
const workers = 8;
/** Rest of one worker between two submissions: the system must keep up, so that a gap is not a queue. */
const restMs = 40;
const beforeMs = 1_500;
/** How long the gaps are measured after a kill; by then every member has been the proposer. */
const afterMs = 10_000;
const lookEveryMs = 10;

const latestDocket = z.object({ docketNumber: z.number() });
const policy = z.object({ leaderElection: z.object({ leaderTimeoutMs: z.number() }) });

/**
 * The longest time without a confirmation after kill -9 of the next proposer's process, under load. The load is sent to
 * the listeners of the others, and what was not accepted is sent again.
 */
export async function pauseAfterKill(stage: Stage): Promise<Row> {
  const { api, token, registerId } = stage;
  const at = `/api/registers/${registerId}`;
  const answer = await api.expect(200, 'GET', `${at}/policy`, { token });
  const { leaderTimeoutMs } = policy.parse(
    (answer.body as { policy?: unknown }).policy ?? answer.body,
  ).leaderElection;
  const gaps: number[] = [];
  for (let n = 0; n < kills; n++) {
    gaps.push(await oneKill(stage));
    await until('all validators are back', 60_000, async () => {
      const { operational, members, lastDocketNumber } = await setStatus(api, token, registerId);
      const caughtUp = members.every((member) => (member.lastDocketNumber ?? 0) >= lastDocketNumber - 1);
      return operational === members.length && caughtUp ? true : undefined;
    });
  }
  return {
    measure: 'longest pause after kill -9 of the proposer',
    ours: gaps,
    raw: [],
    unit: 's',
    bound: { kind: 'worst', atMost: leaderTimeoutMs / 1000 + 2 },
  };
}

/** Seconds of the longest gap between two confirmations around one kill. */
async function oneKill(stage: Stage): Promise<number> {
  const pools = new Map(
    stage.system.state.validators.map(({ validatorId, https }) => [
      validatorId,
      stage.pool(`https://${https}`, workers),
    ]),
  );
  let over = false;
  const bodies = presign(stage.registerId, Math.ceil(((beforeMs + afterMs) * 4 * workers) / restMs));
  let next = 0;
  const load = Array.from({ length: workers }, async () => {
    while (!over) {
      const place = next++;
      const body = bodies[place % bodies.length] ?? '';
      const alive = [...pools.values()];
      const pool = alive[place % alive.length];
      // A missing answer of the killed listener does not matter: the others are under load anyway.
      if (pool !== undefined) await post(pool, validatePath, stage.token, body).catch(() => undefined);
      await rest(restMs);
    }
  });
  const watched = watch(stage, () => over);
  await rest(beforeMs);
  const victim = await nextProposer(stage);
  const pool = pools.get(victim);
  pools.delete(victim);
  const killedAt = performance.now();
  stage.system.killOne(victim);
  await rest(afterMs);
  over = true;
  await Promise.all(load);
  const gapMs = longestGap(await watched, killedAt);
  await Promise.all([pool, ...pools.values()].map((each) => each?.destroy()));
  await stage.system.again(victim);
  return gapMs / 1000;
}

/** proposer(h, r) = V[(h + r) mod n], V in the order of the ids. */
async function nextProposer({ api, token, registerId, system }: Stage): Promise<string> {
  const answer = await api.expect(200, 'GET', `/api/registers/${registerId}/dockets/latest`, { token });
  const members = system.state.validators.map(({ validatorId }) => validatorId).toSorted();
  const { docketNumber } = latestDocket.parse(answer.body);
  return members[(docketNumber + 1) % members.length] ?? '';
}

/** Moments at which the number of confirmed transactions had grown, by the register service's own listener. */
async function watch(stage: Stage, isOver: () => boolean): Promise<readonly number[]> {
  const pool = stage.pool(stage.addressOf('register', 'HTTPS'), 1);
  const path = `/api/registers/${stage.registerId}/transactions?pageSize=1`;
  const headers = { authorization: `Bearer ${stage.token}` };
  const moments: number[] = [];
  let known = -1;
  while (!isOver()) {
    const answer = await pool.request({ path, method: 'GET', headers });
    const { totalCount } = (await answer.body.json()) as { totalCount: number };
    if (totalCount > known) moments.push(performance.now());
    known = Math.max(known, totalCount);
    await rest(lookEveryMs);
  }
  // A pause that lasts until the end counts too.
  moments.push(performance.now());
  await pool.close();
  return moments;
}

/** The longest of the gaps that end after the kill. */
export function longestGap(moments: readonly number[], killedAt: number): number {
  let gapMs = 0;
  for (const [place, moment] of moments.entries()) {
    const before = moments[place - 1];
    if (before !== undefined && moment > killedAt) gapMs = Math.max(gapMs, moment - before);
  }
  return gapMs;
}
