import { expect, test } from 'vitest';
import { z } from 'zod';
import { createRegister, createWallet, type Wallet, waitOnline } from '../harness/journey.ts';
import { metricOf } from '../harness/ops.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { installation } from '../harness/shared-system.ts';
import { setStatus } from '../harness/validation.ts';
import { inParallel, until } from '../harness/wait.ts';

const capacity = 10_000;
/** Below the limit of one sender, 256. */
const perSender = 200;
const here = installation();
const isFull = process.env['CHANCERY_TEST_LENGTH'] === 'full';

const renaming = z.object({ pendingChange: z.object({ txId: z.string() }) });
const docket = z.object({ transactionIds: z.array(z.string()) });

/**
 * Ten thousand transactions take half a minute; the limits themselves are tested at the pool (components/validator).
 */
test.runIf(isFull)(
  'a paused register accepts 10,000 transactions and no more; control transactions still enter and are sealed first',
  async () => {
    const { api } = here;
    const token = here.token();
    const owner: Wallet = await createWallet(api, token, 'ED25519');
    const registerId = await createRegister(api, token, 'Crowded', owner);
    await waitOnline(api, token, registerId);
    const path = '/api/v1/transactions/validate';
    const set = (act: string) =>
      api.expect(200, 'POST', `/api/admin/validation/${act}/${registerId}`, { token });
    await set('pause');

    const keys = Array.from({ length: capacity / perSender }, createOutsideKey);
    const work = keys.flatMap((key) => Array.from({ length: perSender }, (_, n) => ({ key, n })));
    await inParallel(work, 32, ({ key, n }) =>
      api.expect(200, 'POST', path, { token, json: signSubmission(key, { registerId, payload: { n } }) }),
    );
    expect((await setStatus(api, token, registerId)).memPoolSize).toBe(capacity);

    const json = signSubmission(createOutsideKey(), { registerId, payload: 'one more' });
    const refused = await api.send('POST', path, { token, json });
    expect(refused.status).toBe(429);
    expect(refused.body).toMatchObject({ code: 'MEMPOOL_FULL' });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    const ops = here.state.validators[0]?.ops ?? '';
    expect(await metricOf(ops, 'process_resident_memory_bytes')).toBeLessThan(1024 * 1024 * 1024);

    const change = { token, json: { title: 'Renamed' } };
    const renamed = await api.expect(202, 'PUT', `/api/registers/${registerId}`, change);
    const { txId } = renaming.parse(renamed.body).pendingChange;
    expect((await setStatus(api, token, registerId)).memPoolSize).toBe(capacity + 1);

    await set('resume');
    await until('all sealed', 120_000, async () => {
      const { memPoolSize } = await setStatus(api, token, registerId);
      return memPoolSize === 0 ? true : undefined;
    });
    const first = await api.expect(200, 'GET', `/api/registers/${registerId}/dockets/1`, { token });
    expect(docket.parse(first.body).transactionIds[0]).toBe(txId);
  },
  240_000,
);
