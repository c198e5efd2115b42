import { afterEach, describe, expect, it } from 'vitest';
import { docketHash } from '#core/ledger/docket.ts';
import { World } from './testing/world.ts';

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.remove();
});

async function openWorld(overrides = {}): Promise<World> {
  const world = new World(overrides);
  worlds.push(world);
  return world.open();
}

describe('one validator', () => {
  it('begins a register and seals submissions', async () => {
    const world = await openWorld();
    await world.begin();
    const one = world.sign();
    const answer = await world.submit(one.text);
    expect(answer).toMatchObject({
      status: 200,
      body: { isValid: true, added: true, transactionId: one.txId },
    });
    await world.sealed(2);
    expect(world.ledger.dockets[0]?.docket.header).toMatchObject({ docketNumber: 0, isGenesis: true });
    const second = world.ledger.dockets[1]?.docket.header;
    expect(second?.transactionIds).toEqual([one.txId]);
    expect(second && docketHash(second)).toBe(second?.hash);
    expect(world.ledger.attestations).toHaveLength(2);
  });

  it('seals 250 transactions in dockets of at most 100, parents first', async () => {
    const world = await openWorld();
    await world.begin({ consensus: { maxTransactionsPerDocket: 100 } });
    await world.engine.setMode(world.register.id, 'Paused');
    const ids: string[] = [];
    let previous: string | undefined;
    for (let index = 0; index < 250; index += 1) {
      const draft = world.sign({ payload: { index }, previous: index % 5 === 0 ? undefined : previous });
      previous = draft.txId;
      ids.push(draft.txId);
      expect((await world.submit(draft.text)).status).toBe(200);
    }
    await world.engine.setMode(world.register.id, 'Running');
    await world.sealed(251);
    const order = world.ledger.dockets.flatMap(({ docket }) => docket.header.transactionIds);
    for (const { docket } of world.ledger.dockets) {
      expect(docket.transactions.length).toBeLessThanOrEqual(100);
      for (const { txId, previousTransactionId } of docket.transactions) {
        if (previousTransactionId !== undefined) {
          expect(order.indexOf(previousTransactionId)).toBeLessThan(order.indexOf(txId));
        }
      }
    }
    expect(new Set(order.slice(1))).toEqual(new Set(ids));
  });
});
