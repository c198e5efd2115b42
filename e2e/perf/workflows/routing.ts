import type { Pool } from 'undici';
import { startRaw } from '../raw/child.ts';
import { personToken, tokenKeys } from '../raw/workflow/installation.ts';
import type { Row } from '../report.ts';
import { perCpuSecond } from '../services.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from './lengths.ts';
import { applying, openPermits, type Permits } from './permits.ts';
import { call, lanes } from './sides.ts';
import { byTurns } from './turns.ts';

export const routePath = '/api/execution/route';

/** The answer of the helper about an application; throws when it is another one. */
export async function askRoute(
  pool: Pool,
  { path, token, blueprintId }: { path: string; token: string } & Pick<Permits, 'blueprintId'>,
): Promise<object> {
  const json = { blueprintId, actionId: '0', data: applying.payload };
  const { body } = await call(pool, { method: 'POST', path, token, json });
  if (body.nextActionId !== '1') throw new Error(`${path} routes to ${body.nextActionId}`);
  return body;
}

/** CPU of the workflow service for an answer of the route helper, against bare node:https with the same token check. */
export async function routeHelper(stage: Stage, lengths: Lengths): Promise<Row> {
  const { parties, blueprintId } = await openPermits(stage, { devMode: true });
  const { token } = parties['planning-office'];
  const asked = { path: routePath, token, blueprintId };
  const ours = stage.pool(stage.addressOf('blueprint', 'HTTPS'), lanes);
  const keys = tokenKeys();
  const program = await startRaw(new URL('../raw/workflow/route.ts', import.meta.url), {
    ...stage.svid,
    clientKey: keys.publicKey,
    answer: await askRoute(ours, asked),
  });
  const bare = stage.pool(program.said, lanes);
  const rawToken = personToken(keys.signingKey, 'planning-office');
  const askedRaw = { path: '/', token: rawToken, blueprintId };
  const micros = async (pid: number, ask: () => Promise<unknown>): Promise<number> =>
    1e6 / (await perCpuSecond(pid, lengths.helperRequests, async () => void (await ask())));
  try {
    const pairs = await byTurns(
      lengths,
      () => micros(stage.pidOf('blueprint'), () => askRoute(ours, asked)),
      () => micros(program.pid, () => askRoute(bare, askedRaw)),
    );
    return {
      measure: 'route helper: CPU of the workflow service per request',
      ...pairs,
      unit: 'us',
      bound: { kind: 'multiple', atMost: 2 },
    };
  } finally {
    await Promise.all([ours.close(), bare.close()]);
    await program.stop();
  }
}
