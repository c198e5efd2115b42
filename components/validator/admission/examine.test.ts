import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Cluster } from '../testing/cluster.ts';
import { examine } from './examine.ts';

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

  /** What a member whose state is of height 2 finds while the register service holds that many dockets. */
  async function found(storedHeight: number) {
    const { ledger } = cluster;
    const { register } = cluster.member(0);
    const facts = await ledger.findRegister(register.id);
    const given = ledger.dockets[1]?.docket.transactions ?? [];
    expect(given).toHaveLength(1);
    expect(register.state.height).toBe(2);
    return examine(
      {
        ledger: {
          lookup: (questions) => ledger.lookup(questions),
          findRegister: async () => facts && { ...facts, height: storedHeight },
        },
        verify: async (items) => items.map(() => true),
      },
      register,
      given,
      { atMs: Date.now(), types: new Map(), certified: false },
    );
  }

  test('is invalid when that was in an earlier docket', async () => {
    expect(await found(2)).toBe('invalid');
  });

  test('is not judged by who is behind: it may have been sealed by this very proposal', async () => {
    await expect(found(3)).rejects.toMatchObject({ kind: 'unavailable', code: 'VAL_CHAIN_TRANSIENT' });
  });
});
