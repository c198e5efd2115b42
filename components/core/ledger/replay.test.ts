import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findReplayKey, type ReplayFacts } from './replay.ts';

const facts: ReplayFacts = { type: 'Action', senderAddress: 'w1sender', payloadHash: 'ab'.repeat(32) };

describe('replay keys', () => {
  it('are made of sender, payload hash and predecessor', () => {
    const text = `platform:replay:v1\nw1sender\n${'ab'.repeat(32)}\n`;
    const digest = createHash('sha256').update(text).digest('hex');
    expect(findReplayKey(facts)).toBe(digest.slice(0, 32));
  });

  it('differ for equal payloads of other senders or behind other predecessors', () => {
    const keys = [
      facts,
      { ...facts, senderAddress: 'w1other' },
      { ...facts, payloadHash: 'cd'.repeat(32) },
      { ...facts, previousTransactionId: '01'.repeat(32) },
      { ...facts, previousTransactionId: '02'.repeat(32) },
    ].map(findReplayKey);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it('exist for Actions only', () => {
    expect(findReplayKey({ ...facts, type: 'Control' })).toBeUndefined();
    expect(findReplayKey({ ...facts, type: 'Genesis' })).toBeUndefined();
  });

  it('do not depend on other members of a transaction', () => {
    fc.assert(
      fc.property(fc.string(), (note) => {
        expect(findReplayKey({ ...facts, ...{ note } })).toBe(findReplayKey(facts));
      }),
    );
  });
});
