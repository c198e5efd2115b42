import { randomUUID } from 'node:crypto';
import { median, type Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { openTenant, password } from './tenant.ts';

/** Requests that must not tell whether an address has an account. */
const requests: Readonly<Record<string, { path: string; status: number; body(email: string): object }>> = {
  'login with a wrong password': {
    path: '/api/auth/login',
    status: 401,
    body: (email) => ({ email, password: 'wrong copper violin song' }),
  },
  registration: {
    path: '/api/auth/register',
    status: 201,
    body: (email) => ({ orgSubdomain: 'public', email, password, displayName: 'Ada' }),
  },
  'a forgotten password': { path: '/api/auth/password/forgot', status: 202, body: (email) => ({ email }) },
  'options for a passkey': {
    path: '/api/auth/passkey/assertion/options',
    status: 200,
    body: (email) => ({ email }),
  },
};

/** Requests of an address before limits against guessing and unasked mails answer. */
const mostOfAddress = 3;

type Timed = (email: string) => Promise<number>;

/** Medians for known and unknown addresses by turns; the slower against the faster. */
export async function oracles(stage: Stage, lengths: Lengths): Promise<readonly Row[]> {
  const tenant = openTenant(stage);
  const known = Array.from({ length: lengths.people }, () => `${randomUUID()}@bench.example`);
  for (const email of known) await tenant.accounts.create(email, password);
  const rows: Row[] = [];
  for (const [name, { path, status, body }] of Object.entries(requests)) {
    const medians = await byTurns(known, async (email) => {
      const startedAt = performance.now();
      await tenant.post(path, body(email), status);
      return performance.now() - startedAt;
    });
    const [faster = 0, slower = 0] = medians.toSorted((a, b) => a - b);
    rows.push({
      measure: `${name}: known and unknown addresses`,
      ours: [slower],
      raw: [faster],
      unit: 'ms',
      bound: { kind: 'multiple', atMost: 1.05 },
    });
  }
  await tenant.close();
  return rows;
}

/** The order within a pair changes, so that neither follows the other always. */
async function byTurns(known: readonly string[], timed: Timed): Promise<readonly [number, number]> {
  const times = { known: [] as number[], unknown: [] as number[] };
  for (let turn = 0; turn < mostOfAddress; turn++) {
    for (const [n, email] of known.entries()) {
      const stranger = `${randomUUID()}@bench.example`;
      const pair = [['known', email] as const, ['unknown', stranger] as const];
      for (const [kind, address] of n % 2 === 0 ? pair : pair.toReversed()) {
        times[kind].push(await timed(address));
      }
    }
  }
  return [median(times.known), median(times.unknown)];
}
