import { describe, expect, it } from 'vitest';
import { assertQuorumConnected, type RegisterContact } from './quorum-contact.ts';

const nowMs = 1_000_000;
const contact = (registerId: string, quorum: number, agesMs: readonly number[]): RegisterContact => ({
  registerId,
  quorum,
  members: agesMs.map((ageMs) => ({ heardAtMs: nowMs - ageMs })),
});
const judge = (...contacts: readonly RegisterContact[]) => assertQuorumConnected(contacts, nowMs);

describe('a member', () => {
  it('that recently heard a quorum, including itself, is connected', () => {
    expect(() => judge()).not.toThrow();
    expect(() => judge(contact('alone', 1, [0]))).not.toThrow();
    expect(() => judge(contact('four', 3, [0, 900, 5_000, nowMs]))).not.toThrow();
  });

  it('that heard fewer names the register whose answers may be stale', () => {
    expect(() => judge(contact('four', 3, [0, 900, 5_001, nowMs]))).toThrow(
      'stale: 2 of 4 members of register four were heard in the last 5 s, a quorum is 3',
    );
    const cut = contact('cut', 2, [0, 6_000]);
    expect(() => judge(contact('alone', 1, [0]), cut, contact('cut too', 2, [0, 7_000]))).toThrow(
      'stale: 1 of 2 members of register cut were heard in the last 5 s, a quorum is 2; 1 more registers without a quorum',
    );
  });
});
