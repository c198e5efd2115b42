import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { memberDid } from '#core/ledger/did.ts';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { migrations } from '../../database/migrations/list.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';

const tables = ['register_rules', 'policy_versions', 'governance_operations', 'governance_proposals'];

describe('a register that predates the rules', () => {
  let register: TestRegister;
  let registerId: string;
  let registerNo: number;
  beforeAll(async () => {
    register = await startTestRegister('replay', { members: 4 });
    registerId = await register.createRegister('Replayed');
    registerNo = (await register.state(registerId)).registerNo;
  });
  afterAll(() => register.stop());

  const post = (rest: string, body: unknown) =>
    register.call('POST', `/api/registers/${registerId}${rest}`, { token: 'admin', body });
  const get = (rest: string) =>
    register.call('GET', `/api/registers/${registerId}${rest}`, { token: 'admin' });

  async function step(rest: string, body: unknown) {
    expect((await post(rest, body)).status).toBe(202);
    await register.seal(registerId);
  }

  async function rows() {
    const found: Record<string, unknown> = {};
    for (const table of [...tables, 'register_roster', 'register_validators']) {
      const text = `select * from ${table} where register_no = $1 order by 1, 2, 3`;
      found[table] = (await register.database.pool.query(text, [registerNo])).rows;
    }
    const facts =
      'select title, policy, policy_version, dev_mode, metadata from registers where register_no = $1';
    found['registers'] = (await register.database.pool.query(facts, [registerNo])).rows;
    return found;
  }

  /** Makes the register look as if it had been written before the rules existed. */
  async function forget() {
    for (const table of tables) {
      await register.database.pool.query(`delete from ${table} where register_no = $1`, [registerNo]);
    }
    await register.database.pool.query(
      "update registers set title = 'x', policy = '{}', policy_version = 1 where register_no = $1",
      [registerNo],
    );
  }

  it('gets its rules from its own sealed control transactions, row by row', async () => {
    const owner = memberDid(testKey(1).walletAddress);
    const target = { targetDid: memberDid(testKey(2).walletAddress) };
    const targetKey = { publicKey: testKey(2).publicKey, algorithm: 'ED25519' };
    await step('/policy/update', { policy: { consensus: { docketTimeoutSeconds: 40 } }, updatedBy: owner });
    await step('/governance/propose', {
      operationType: 'add-member',
      ...target,
      targetRole: 'Auditor',
      targetKey,
    });
    const suspend = await register.call('POST', `/api/validators/${registerId}/validator-2/suspend`, {
      token: 'admin',
    });
    expect(suspend.status).toBe(202);
    await register.seal(registerId);
    await step('/policy/update', { policy: { consensus: { docketTimeoutSeconds: 50 } }, updatedBy: owner });
    const approve = `/api/validators/${registerId}/validator-2/approve`;
    expect((await register.call('POST', approve, { token: 'admin', body: {} })).status).toBe(202);
    await register.seal(registerId);
    const before = await rows();
    await forget();
    const answers = await Promise.all(Array.from({ length: 4 }, () => get('/governance/roster')));
    expect(answers.map((answer) => answer.body.count)).toEqual([2, 2, 2, 2]);
    expect(await rows()).toEqual(before);
  });

  it('is backfilled by the next docket too, and returns its rules to validators', async () => {
    await forget();
    await step('/governance/propose', {
      operationType: 'change-role',
      targetDid: memberDid(testKey(2).walletAddress),
      targetRole: 'Designer',
    });
    const { rules } = await register.state(registerId);
    expect(rules?.roster.map((entry) => entry.role)).toEqual(['Owner', 'Designer']);
    expect((await get('/policy/history')).body.totalCount).toBe(3);
  });

  it('judges old certificates by the policy of their own height', async () => {
    const owner = memberDid(testKey(1).walletAddress);
    expect(
      (
        await post('/policy/update', {
          policy: { consensus: { signatureThresholdMin: 4 } },
          updatedBy: owner,
        })
      ).status,
    ).toBe(202);
    const lax = await register.seal(registerId);
    expect(lax.certificate.signatures).toHaveLength(3);
    const operation = { operationType: 'suspend-validator', validatorId: 'validator-2' };
    expect((await post('/governance/propose', operation)).status).toBe(422);
    // Three of four voted; from the next docket on all four are needed.
    expect(await register.ledger.writeDocket(lax)).toMatchObject({ outcome: 'replayed' });
    expect(
      (
        await post('/governance/propose', {
          operationType: 'remove-member',
          targetDid: memberDid(testKey(2).walletAddress),
        })
      ).status,
    ).toBe(202);
    const short = await register.propose(registerId);
    expect(await register.ledger.writeDocket(short)).toMatchObject({
      outcome: 'invalid',
      violations: [{ code: 'VAL_CERT_003' }],
    });
  });
});

describe('the migration of the rules', () => {
  it('keeps the registers of an older database', async () => {
    const runtime = testRuntime('service-register');
    const { log, telemetry } = runtime;
    const url = await testDatabase('rules-migration');
    const options = { url, schema: 'register', log, telemetry };
    const old = await openDatabase<RegisterSchema>({ ...options, migrations: migrations.slice(0, -1) });
    await old.pool.query(`insert into registers (register_id, network_id, title, purpose, status, dev_mode, advertise,
      metadata, policy, policy_version, genesis_transaction_id, system_public_key, system_algorithm, created_at, updated_at)
      values ('r', 'n', 'Old', 'General', 'Online', false, false, '{}', '{}', 1, 'g', 'k', 'ED25519', now(), now())`);
    await old.close();
    const now = await openDatabase<RegisterSchema>({ ...options, migrations });
    const { rows } = await now.pool.query('select title, status, deleted_at, purged_at from registers');
    await now.close();
    expect(rows).toEqual([{ title: 'Old', status: 'Online', deleted_at: null, purged_at: null }]);
  });
});
