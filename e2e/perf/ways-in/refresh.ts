import { z } from 'zod';
import { inParallel } from '../../harness/wait.ts';
import { percentile, type Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { openTenant, password, type Tenant } from './tenant.ts';

const connections = 64;
const sessions = 4;
const tokens = z.object({ refresh_token: z.string() });

/** The p99 of a refresh while 64 connections sign in without a pause, against the same alone. */
export async function refreshBesideSignIns(stage: Stage, lengths: Lengths): Promise<Row> {
  const tenant = openTenant(stage);
  const people = Array.from({ length: connections }, (_, n) => `beside-${n}@bench.example`);
  await inParallel(people, 4, (email) => tenant.accounts.create(email, password));
  const login = (email: string) => tenant.post('/api/auth/login', { email, password });
  const kept = await Promise.all(
    people.slice(0, sessions).map(async (email) => tokens.parse(await login(email)).refresh_token),
  );
  const figures = { ours: [] as number[], raw: [] as number[] };
  for (let n = 0; n < lengths.warmUp + lengths.rounds; n++) {
    const alone = await p99(tenant, kept, lengths.signIns);
    let goesOn = true;
    const load = people.map(async (email) => {
      while (goesOn) await login(email);
    });
    const beside = await p99(tenant, kept, lengths.signIns);
    goesOn = false;
    await Promise.all(load);
    if (n < lengths.warmUp) continue;
    figures.ours.push(beside);
    figures.raw.push(alone);
  }
  await tenant.close();
  return {
    measure: 'p99 of a refresh while 64 connections sign in',
    ...figures,
    unit: 'ms',
    bound: { kind: 'multiple', atMost: 3 },
  };
}

/** Sessions side by side, each with one refresh after the other. */
async function p99(tenant: Tenant, kept: string[], count: number): Promise<number> {
  const durations: number[] = [];
  const renew = async (_: string, place: number) => {
    for (let n = 0; n < count / sessions; n++) {
      const startedAt = performance.now();
      const answer = await tenant.post('/api/auth/token/refresh', { refreshToken: kept[place] });
      durations.push(performance.now() - startedAt);
      kept[place] = tokens.parse(answer).refresh_token;
    }
  };
  await Promise.all(kept.map(renew));
  return percentile(durations, 0.99);
}
