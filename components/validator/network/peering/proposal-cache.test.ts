import { describe, expect, it } from 'vitest';
import type { ProposalEnvelope } from '../transport/transport.ts';
import { ProposalCache } from './proposal-cache.ts';

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
    const proposals = new ProposalCache();
    const first = proposal('validator-1', 'a', 4, 2);
    proposals.add('validator-1', first);
    proposals.add('validator-2', first);
    const { value } = first.proposal;
    expect([...(proposals.find('a', value)?.sources ?? [])]).toEqual(['validator-1', 'validator-2']);
    expect(proposals.find('b', value)).toBeUndefined();
    proposals.forgetBelow('a', 4);
    expect(proposals.find('a', value)).toBeDefined();
    proposals.forgetBelow('a', 5);
    expect(proposals.find('a', value)).toBeUndefined();
  });

  it("evicts a proposer's own oldest proposals when it proposes too much", () => {
    const proposals = new ProposalCache();
    const honest = proposal('validator-0', 'a', 1, 1_000);
    proposals.add('validator-0', honest);
    const flood = Array.from({ length: 100 }, (_, index) => proposal('validator-1', 'a', index, 5_000));
    for (const each of flood) proposals.add('validator-1', each);
    const kept = flood.filter(({ proposal: { value } }) => proposals.find('a', value) !== undefined);
    expect(kept).toEqual(flood.slice(-10));
    expect(proposals.find('a', honest.proposal.value)).toBeDefined();
  });
});
