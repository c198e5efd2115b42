import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Cluster } from '../../testing/cluster.ts';
import { verifyPeerTransactions } from './verify-peer-transactions.ts';

describe('a proposal with a transaction that the register service has stored', () => {
  const cluster = new Cluster(1);
  beforeAll(async () => {
    await cluster.open();
    await cluster.begin();
    await cluster.submit(cluster.member(0), { payload: { sealed: 1 } });
    await cluster.sealed(2);
    await cluster.agreed();
  });
  afterAll(() => cluster.remove());

  /** The verdict of a member with a state of height 2 while the register service holds that many dockets. */
  async function found(storedHeight: number) {
    const { ledger } = cluster;
    const { register } = cluster.member(0);
    const facts = await ledger.findRegister(register.id);
    const given = ledger.dockets[1]?.docket.transactions ?? [];
    expect(given).toHaveLength(1);
    expect(register.state.height).toBe(2);
    return verifyPeerTransactions(
      {
        ledger: { findRegister: async () => facts && { ...facts, height: storedHeight } },
        lookup: {
          certain: () => undefined,
          ask: (questions) => ledger.lookup(questions.map(({ query }) => query)),
        },
        verify: async (items) => items.map(() => true),
      },
      register,
      given,
      { atMs: Date.now(), nowTicks: BigInt(Date.now()) * 10_000n, known: new Map(), certified: false },
    );
  }

  test('is invalid when an earlier docket contains it', async () => {
    expect(await found(2)).toBe('invalid');
  });

  test('is not judged by a member that is behind, since this very proposal may have sealed it', async () => {
    await expect(found(3)).rejects.toMatchObject({ kind: 'unavailable', code: 'VAL_CHAIN_TRANSIENT' });
  });
});
