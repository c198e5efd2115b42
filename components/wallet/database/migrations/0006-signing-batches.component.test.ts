import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { openDatabase } from '#kit/db/db.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { createSignerStore } from '../../system-signer/store.ts';
import { signingBatches } from './0006-signing-batches.ts';
import { migrations } from './list.ts';

test('a position that was taken before the upgrade still holds, and its message may be repeated', async () => {
  const { log, telemetry } = testRuntime('service-wallet');
  const url = await testDatabase('wallet_batches_upgrade');
  const open = (list: typeof migrations) =>
    openDatabase<Record<never, never>>({ url, schema: 'wallet', log, telemetry, migrations: list });
  const before = await open(migrations.slice(0, migrations.indexOf(signingBatches)));
  const [digest, signature] = [Buffer.alloc(32, 1), Buffer.alloc(64, 2)];
  await before.transact(async (tx) => {
    await sql`INSERT INTO signing_guard VALUES ('r1', 'validator-0', 7, 1, 2, ${digest}, ${signature})`.execute(
      tx,
    );
    await sql`INSERT INTO signer_epochs (validator_id, epoch) VALUES ('validator-0', 3)`.execute(tx);
  });
  await before.close();
  const after = await open(migrations);
  try {
    const store = createSignerStore(after.pool);
    const of = { registerId: 'r1', validatorId: 'validator-0' };
    const kept = [{ step: 2, digest, signature }];
    expect(await store.position(of)).toEqual({ height: 7n, round: 1n, step: 2, kept });
    const batch = (round: number) =>
      ({
        ...of,
        height: 7n,
        round,
        firstStep: 1,
        messages: [
          { step: 1, digest: Buffer.alloc(32, 3), signature },
          { step: 2, digest, signature },
        ],
      }) as const;
    expect(await store.guard(batch(1), 3n)).toBe(false);
    expect(await store.guard(batch(2), 2n)).toBe(false);
    expect(await store.guard(batch(2), 3n)).toBe(true);
    expect(await store.position(of)).toMatchObject({ round: 2n, step: 2, kept: batch(2).messages });
  } finally {
    await after.close();
  }
});
