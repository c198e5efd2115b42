import { describe, expect, it } from 'vitest';
import { createConfirmations } from './confirmations.ts';

const key = { registerId: 'r', txId: 't' };
const bytes = { leaf: Buffer.from('leaf'), record: Buffer.from('record'), payload: Buffer.from('payload') };
const transaction = (txId: string) => ({ txId, payloadHashForm: 'canonical', ...bytes });
const docket = { registerId: 'r', docketNumber: 7, transactions: [transaction('x'), transaction('t')] };

/** A look-up that finds nothing until `store` is called, with the number of calls. */
function stored() {
  let now = false;
  let asked = 0;
  return {
    store: () => {
      now = true;
    },
    asked: () => asked,
    find: async () => {
      asked += 1;
      return now ? 'row' : undefined;
    },
  };
}

describe('waiting for a confirmation', () => {
  it('ends at once for a stored transaction', async () => {
    const ledger = stored();
    ledger.store();
    expect(await createConfirmations().wait(key, { timeoutMs: 1_000, find: ledger.find })).toBe('row');
    expect(ledger.asked()).toBe(1);
  });

  it('wakes for its own docket and for a wake signal', async () => {
    const ring = [
      (confirmations: ReturnType<typeof createConfirmations>) => confirmations.confirmed(docket),
      (confirmations: ReturnType<typeof createConfirmations>) => confirmations.recheck(),
    ];
    for (const wake of ring) {
      const confirmations = createConfirmations();
      const ledger = stored();
      const startedAt = performance.now();
      const waiting = confirmations.wait(key, { timeoutMs: 60_000, find: ledger.find });
      ledger.store();
      wake(confirmations);
      expect(await waiting).toBe('row');
      expect(performance.now() - startedAt).toBeLessThan(400);
    }
  });

  it('takes a transaction that this process stores without reading it, also while a read is in progress', async () => {
    for (const isReading of [true, false]) {
      const { promise: read, resolve: endRead } = Promise.withResolvers<undefined>();
      let asked = 0;
      const find = () => {
        asked += 1;
        return read;
      };
      const confirmations = createConfirmations();
      const fromStored = (row: object) => row;
      const waiting = confirmations.wait<object>(key, { timeoutMs: 60_000, find, fromStored });
      if (!isReading) endRead(undefined);
      await Promise.resolve();
      confirmations.confirmed({ ...docket, registerId: 'other' });
      confirmations.confirmed(docket);
      const row = { docketNumber: 7, position: 1, payloadHashForm: 'canonical', ...bytes };
      expect(await waiting).toEqual(row);
      expect(asked).toBe(1);
    }
  });

  it('notices a docket whose wake signal was lost', async () => {
    const ledger = stored();
    const waiting = createConfirmations().wait(key, { timeoutMs: 60_000, find: ledger.find });
    ledger.store();
    expect(await waiting).toBe('row');
  });

  it('ends without a row when the time is up, and when the service stops', async () => {
    const confirmations = createConfirmations();
    const { find } = stored();
    expect(await confirmations.wait(key, { timeoutMs: 20, find })).toBeUndefined();
    const waiting = confirmations.wait(key, { timeoutMs: 60_000, find });
    confirmations.close();
    expect(await waiting).toBeUndefined();
  });

  it('rethrows errors of the ledger', async () => {
    const find = () => Promise.reject(new Error('away'));
    await expect(createConfirmations().wait(key, { timeoutMs: 10, find })).rejects.toThrow('away');
  });
});
