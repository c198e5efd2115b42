import { describe, expect, test } from 'vitest';
import type { LedgerRules, LedgerValidator } from '#core/ledger/governance/rules.ts';
import type { ProvenEvidence } from '../evidence/evidence.ts';
import {
  convictedValidators,
  doubleSignOf,
  findSuspensionEvidence,
  proposalDelayMs,
} from './suspension-evidence.ts';

const hash = 'ab'.repeat(32);
const registerId = '0123456789abcdef0123456789abcdef';

function known(
  validatorId: string,
  height: number,
  kind: 'prevote' | 'proposal' = 'prevote',
): ProvenEvidence {
  const value = { hash, merkleRoot: hash, logRoot: hash };
  const common = { height, round: 2, validatorId, signature: 'AAAA' };
  const vote = { kind: 'prevote', ...common, timestamp: 't' } as const;
  const proposal = { kind: 'proposal', ...common, value: { ...value, timestamp: 'p' } } as const;
  const pair =
    kind === 'prevote'
      ? { first: { ...vote, value }, second: { ...vote, value: undefined } }
      : { first: { ...proposal, polRound: -1 }, second: { ...proposal, polRound: 1 } };
  return {
    id: `${validatorId}/${height}`,
    evidence: { kind: kind === 'prevote' ? 'duplicate-vote' : 'duplicate-proposal', ...pair },
    height,
    validatorIds: [validatorId],
    networkId: 'here',
    validatorSetHash: hash,
    signers: [],
    seenAtMs: 1,
  };
}

const certificates: ProvenEvidence = {
  ...known('validator-1', 3),
  validatorIds: ['validator-1', 'validator-2'],
  evidence: {
    kind: 'conflicting-certificate',
    first: {
      version: 1,
      height: 3,
      round: 0,
      docketHash: hash,
      merkleRoot: hash,
      logRoot: hash,
      validatorSetHash: hash,
      signatures: [],
    },
    second: {
      version: 1,
      height: 3,
      round: 1,
      docketHash: hash,
      merkleRoot: hash,
      logRoot: hash,
      validatorSetHash: hash,
      signatures: [],
    },
  },
};

/** Rules with one validator that is in the set since a docket. */
function rulesWith(status: LedgerValidator['status'], effectiveFromDocket: number): LedgerRules {
  const key = { publicKey: 'AAAA', algorithm: 'ED25519' } as const;
  const rest = { proofOfPossession: 'AAAA', registeredAt: 't', effectiveFromDocket };
  const validators: LedgerValidator[] = [{ validatorId: 'validator-1', status, ...key, ...rest }];
  const rules: Partial<LedgerRules> = { registerId, roster: [], validators, enacted: [], proposals: [] };
  return rules as LedgerRules;
}

describe('the evidence of a suspension proposal', () => {
  test('carries both messages as they were signed', () => {
    const docket = { docketHash: hash, merkleRoot: hash, logRoot: hash };
    const said = { polRound: -1, validatorSetHash: hash, signature: 'AAAA' };
    expect(doubleSignOf(known('validator-1', 3))).toEqual({
      kind: 'double-sign',
      networkId: 'here',
      type: 2,
      height: 3,
      round: 2,
      first: { ...said, timestamp: 't', docket },
      second: { ...said, timestamp: 't' },
    });
    expect(doubleSignOf(known('validator-1', 3, 'proposal'))).toMatchObject({
      type: 1,
      first: { ...said, timestamp: 'p', docket },
      second: { ...said, polRound: 1, docket },
    });
    expect(doubleSignOf(certificates)).toBeUndefined();
  });

  test("is from the validator's current term, up to the current docket", () => {
    const find = (
      standing: { status?: LedgerValidator['status']; from?: number; height?: number },
      heights: readonly number[],
    ) => {
      const { status = 'Active', from = 0, height = 9 } = standing;
      const all = heights.map((each) => known('validator-1', each));
      return findSuspensionEvidence({ ledger: rulesWith(status, from), height }, 'validator-1', all)?.height;
    };
    expect(find({}, [3, 5])).toBe(3);
    expect(find({ from: 4 }, [3, 5])).toBe(5);
    expect(find({ height: 2 }, [3, 5])).toBeUndefined();
    expect(find({ from: 6 }, [3, 5])).toBeUndefined();
    expect(find({ status: 'Suspended' }, [3])).toBeUndefined();
    const other = { ledger: rulesWith('Active', 0), height: 9 };
    expect(findSuspensionEvidence(other, 'validator-7', [known('validator-7', 3)])).toBeUndefined();
    expect(findSuspensionEvidence(other, 'validator-1', [certificates])).toBeUndefined();
  });

  test('is proposed by one unaccused member after the other', () => {
    const members = ['validator-0', 'validator-1', 'validator-2', 'validator-3'];
    const turns = (height: number) =>
      members.map((self) => proposalDelayMs(members, { self, accused: ['validator-1'], height }));
    expect(turns(0)).toEqual([0, 0, 3_000, 6_000]);
    expect(turns(3)).toEqual([3_000, 0, 6_000, 0]);
    expect(convictedValidators([known('validator-3', 1), known('validator-1', 1), certificates])).toEqual([
      'validator-1',
      'validator-3',
    ]);
  });
});
