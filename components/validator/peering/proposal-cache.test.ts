import { describe, expect, it } from 'vitest';
import { Offers } from './proposal-cache.ts';
import type { ProposalEnvelope } from './transport.ts';

function proposal(validatorId: string, registerId: string, height: number, count: number): ProposalEnvelope {
  const value = { hash: `${validatorId}-${height}`, merkleRoot: '', logRoot: '', timestamp: '' };
  const header = { registerId, docketNumber: height } as ProposalEnvelope['header'];
  return {
    kind: 'proposal',
    registerId,
    proposal: { kind: 'proposal', height, round: 0, polRound: -1, value, validatorId, signature: '' },
    header,
    recordHashes: Array.from({ length: count }, String),
  };
}

describe('the proposal cache', () => {
  it('records the senders of a proposal until its height is decided', () => {
    const offers = new Offers();
    const first = proposal('validator-1', 'a', 4, 2);
    offers.add('validator-1', first);
    offers.add('validator-2', first);
    const { value } = first.proposal;
    expect([...(offers.find('a', value)?.sources ?? [])]).toEqual(['validator-1', 'validator-2']);
    expect(offers.find('b', value)).toBeUndefined();
    offers.forgetBelow('a', 4);
    expect(offers.find('a', value)).toBeDefined();
    offers.forgetBelow('a', 5);
    expect(offers.find('a', value)).toBeUndefined();
  });

  it("evicts a proposer's own oldest proposals when it proposes too much", () => {
    const offers = new Offers();
    const honest = proposal('validator-0', 'a', 1, 1_000);
    offers.add('validator-0', honest);
    const flood = Array.from({ length: 100 }, (_, index) => proposal('validator-1', 'a', index, 5_000));
    for (const each of flood) offers.add('validator-1', each);
    const kept = flood.filter(({ proposal: { value } }) => offers.find('a', value) !== undefined);
    expect(kept).toEqual(flood.slice(-10));
    expect(offers.find('a', honest.proposal.value)).toBeDefined();
  });
});
