import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startReplica, startTestTenant, type TestTenant } from '../../tenant.fixture.ts';
import { createProtection } from '../keys/protection.ts';
import {
  createCodes,
  createTokens,
  type OneTimeCodes,
  type OneTimeTokens,
  type RightCode,
} from './one-time.ts';
import { pruneSecrets } from './store.ts';

const protection = createProtection(Buffer.alloc(32, 7));
const minuteMs = 60_000;

describe('single-use secrets', () => {
  let tenant: TestTenant;
  let other: TestTenant;
  let tokens: OneTimeTokens<{ verifier: string }>;
  let codes: OneTimeCodes;
  let onOther: OneTimeTokens<{ verifier: string }>;
  let codesOnOther: OneTimeCodes;

  const tokensOf = ({ db }: TestTenant) =>
    createTokens(
      { db, clock: tenant.clock, protection },
      { purpose: 'oauth-state', payload: z.object({ verifier: z.string() }), lifetimeMs: 10 * minuteMs },
      'st_',
    );
  const codesOf = ({ db }: TestTenant) =>
    createCodes(
      { db, clock: tenant.clock, protection },
      { purpose: 'phone-code', lifetimeMs: 10 * minuteMs },
    );

  beforeAll(async () => {
    tenant = await startTestTenant('tenant_one_time');
    other = await startReplica(tenant.files);
    [tokens, onOther] = [tokensOf(tenant), tokensOf(other)];
    [codes, codesOnOther] = [codesOf(tenant), codesOf(other)];
  });
  afterAll(async () => {
    await other.db.close();
    await tenant.stop();
  });

  const issue = (verifier = 'secret verifier') =>
    tenant.db.transact((tx) => tokens.issue(tx, { subject: 'google', payload: { verifier } }));
  const take = (token: string) => tenant.db.transact((tx) => tokens.take(tx, token));
  const issueCode = async (subject: string) => {
    const issued = await tenant.db.transact((tx) => codes.issue(tx, subject));
    if (!('code' in issued)) throw new Error(`wait ${issued.waitSeconds} s`);
    return issued.code;
  };
  const wrongOf = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, '0');

  it('a token acts once, gives what it was issued with, and is used afterwards', async () => {
    const token = await issue();
    expect(token).toMatch(/^st_[A-Za-z0-9_-]{43}$/);
    expect(await take(token)).toMatchObject({ subject: 'google', payload: { verifier: 'secret verifier' } });
    expect([await take(token), await take('st_other')]).toEqual(['used', 'unknown']);
  });

  it('of 50 parallel uses on two replicas one acts', async () => {
    const token = await issue();
    const uses = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        index % 2 === 0 ? take(token) : other.db.transact((tx) => onOther.take(tx, token)),
      ),
    );
    expect(uses.filter((use) => typeof use !== 'string')).toHaveLength(1);
    expect(uses.filter((use) => use === 'used')).toHaveLength(49);
  });

  it('a use that is rolled back has not happened', async () => {
    const token = await issue();
    const failing = tenant.db.transact(async (tx) => {
      await tokens.take(tx, token);
      throw new Error('the effect failed');
    });
    await expect(failing).rejects.toThrow('the effect failed');
    expect(await take(token)).toMatchObject({ subject: 'google' });
  });

  it('is expired at its time, stays apart from used for a day, and is unknown then', async () => {
    const [used, unused] = [await issue(), await issue()];
    await take(used);
    await tenant.clock.advance(10 * minuteMs);
    expect([await take(used), await take(unused)]).toEqual(['used', 'expired']);
    await tenant.db.transact((tx) => pruneSecrets(tx, tenant.clock.nowMs() + 1));
    expect([await take(used), await take(unused)]).toEqual(['unknown', 'unknown']);
  });

  it('a token of another purpose is unknown', async () => {
    const token = await issue();
    const foreign = createTokens(
      { db: tenant.db, clock: tenant.clock, protection },
      { purpose: 'challenge', payload: z.object({}), lifetimeMs: minuteMs },
    );
    expect(await tenant.db.transact((tx) => foreign.take(tx, token))).toBe('unknown');
  });

  it('five counted uses are judged, and the next one finds a spent token, also in parallel', async () => {
    const token = await issue();
    const counts = await Promise.all(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? tokens : onOther).count(token)),
    );
    expect(counts.filter((count) => typeof count !== 'string')).toHaveLength(5);
    expect(counts.filter((count) => count === 'spent')).toHaveLength(15);
    expect(await tokens.find(tenant.db.read, token)).toBe('spent');
  });

  it('no readable column holds a token, its payload or a code', async () => {
    const token = await issue('a verifier to look for');
    const code = await issueCode('person-of-the-dump');
    const rows = await tenant.db.read.selectFrom('one_time_secrets').selectAll().execute();
    const dump = JSON.stringify(
      rows.map((row) => ({
        ...row,
        hash: row.hash.toString('latin1'),
        sealed: row.sealed.toString('latin1'),
      })),
    );
    expect(dump).not.toContain(token);
    expect(dump).not.toContain('a verifier to look for');
    expect(dump).not.toMatch(new RegExp(`\\b${code}\\b`));
  });

  it('a code is right for its subject alone, and is used once', async () => {
    const code = await issueCode('ada');
    await issueCode('ben');
    const right = await codes.judge('ada', ` ${code} `);
    expect(right).toHaveProperty('hash');
    const uses = await Promise.all(
      [codes, codesOnOther].map((one, index) =>
        [tenant, other][index]?.db.transact((tx) => one.take(tx, right as RightCode)),
      ),
    );
    expect(uses.toSorted()).toEqual([false, true]);
    expect(await codes.judge('ada', code)).toBe('used');
  });

  it('five wrong codes spend it, so that the right one is refused too', async () => {
    const code = await issueCode('cat');
    const judged = [];
    for (let count = 0; count < 5; count++) judged.push(await codes.judge('cat', wrongOf(code)));
    expect(judged).toEqual(Array(5).fill('wrong'));
    expect(await codes.judge('cat', code)).toBe('spent');
  });

  it('a new code ends the earlier one; 30 s between two, five an hour', async () => {
    const first = await issueCode('dan');
    const wait = await tenant.db.transact((tx) => codes.issue(tx, 'dan'));
    expect(wait).toEqual({ waitSeconds: 30 });
    await tenant.clock.advance(30_000);
    const second = await issueCode('dan');
    if (first !== second) expect(await codes.judge('dan', first)).toBe('wrong');
    for (let count = 0; count < 3; count++) {
      await tenant.clock.advance(30_000);
      await issueCode('dan');
    }
    await tenant.clock.advance(30_000);
    expect(await tenant.db.transact((tx) => codes.issue(tx, 'dan'))).toEqual({ waitSeconds: 3600 - 150 });
  });

  it('of parallel sends one makes a code', async () => {
    const issues = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        (index % 2 === 0 ? tenant : other).db.transact((tx) =>
          (index % 2 === 0 ? codes : codesOnOther).issue(tx, 'eve'),
        ),
      ),
    );
    expect(issues.filter((one) => 'code' in one)).toHaveLength(1);
  });
});
