import { describe, expect, test } from 'vitest';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { validationViolation } from '#core/errors/validation-codes.ts';
import { type ConsensusVote, verifyVote } from '#core/ledger/attestation.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { fakeSigner } from '../../testing/fake-signer.ts';
import { testKey } from '../../testing/keys.ts';
import { registerId } from '../../testing/world.ts';
import type { Proposal } from '../consensus/messages.ts';
import { Rejections } from './rejections.ts';

const members = ['validator-0', 'validator-1', 'validator-2'].map((validatorId, index) => ({
  validatorId,
  publicKey: testKey(31 + index).publicKey,
  algorithm: 'ED25519' as const,
}));
const verifier = createVerifier(nodeEd25519());
const hash = (byte: number) => byte.toString(16).padStart(2, '0').repeat(32);
const found = [validationViolation('VAL_SIZE_001', 'sizeBytes')];

function proposal(height: number, docketHash: string): Proposal {
  const value = { hash: docketHash, merkleRoot: docketHash, logRoot: docketHash, timestamp: 't' };
  return {
    kind: 'proposal',
    height,
    round: 0,
    polRound: -1,
    value,
    validatorId: 'validator-1',
    signature: '',
  };
}

/** A member that rejects, and the rejections it sent. */
function member(self = 'validator-0') {
  const signer = fakeSigner(testKey(31), self);
  const told: [string, number, ConsensusVote][] = [];
  const peers = {
    attest: (_id: string, to: string, docketNumber: number, vote: ConsensusVote) => {
      told.push([to, docketNumber, vote]);
    },
  };
  const { log } = testRuntime('validator', { level: 'error' });
  const rejections = new Rejections(registerId, { self, signer, clock: manualClock(5_000), log, peers });
  return { rejections, told, signer };
}

/** A rejection by another member; the signature is not verified here. */
function heard(docketHash: string, validatorId = 'validator-2'): ConsensusVote {
  const rest = { timestamp: 't', signature: '', reason: 'VAL_SIZE_001', publicKey: '', validatorAddress: '' };
  return { ...rest, docketHash, validatorId, approved: false, algorithm: 'ED25519' };
}

describe('a member that judged a proposal invalid', () => {
  test('sends the others a signed, non-approving vote with the reason', async () => {
    const { rejections, told, signer } = member();
    rejections.reject(proposal(4, hash(1)), found, members);
    await waitFor(() => told.length === 2);
    expect(told.map(([to, docketNumber]) => [to, docketNumber])).toEqual([
      ['validator-1', 4],
      ['validator-2', 4],
    ]);
    const vote = told[0]?.[2];
    if (vote === undefined) throw new Error('nothing was said');
    expect(vote).toMatchObject({ approved: false, docketHash: hash(1), validatorId: 'validator-0' });
    expect(vote.reason).toMatch(/^VAL_SIZE_001: /);
    expect(verifyVote(vote, verifier)).toBe(true);
    expect(verifyVote({ ...vote, approved: true }, verifier)).toBe(false);
    expect(rejections.all).toEqual([{ docketNumber: 4, vote }]);
    expect(signer.signed.map(({ kind }) => kind)).toEqual(['attestation']);
  });

  test('sends one rejection per docket and a few per height', async () => {
    const { rejections, told } = member();
    for (const byte of [1, 1, 2, 3, 4, 5, 6]) rejections.reject(proposal(4, hash(byte)), found, members);
    await waitFor(() => told.length === 8);
    rejections.reject(proposal(4, hash(7)), found, members);
    rejections.reject(proposal(5, hash(8)), found, members);
    await waitFor(() => told.length === 10);
    expect(rejections.all.map(({ vote }) => vote.docketHash)).toEqual([1, 2, 3, 4, 8].map(hash));
  });

  test('sends nothing outside the set, and continues when the signer fails', async () => {
    const { rejections, told, signer } = member('validator-9');
    rejections.reject(proposal(4, hash(1)), found, members);
    expect(signer.signed).toEqual([]);
    const other = member();
    other.signer.before = () => {
      throw new Error('away');
    };
    other.rejections.reject(proposal(4, hash(1)), found, members);
    await waitFor(() =>
      other.rejections.isNew({ docketNumber: 4, docketHash: hash(1), validatorId: 'validator-0' }),
    );
    expect([told, other.told, other.rejections.all]).toEqual([[], [], []]);
  });
});

describe('rejections of other members', () => {
  test('are bounded per member, and do not displace those of other members', () => {
    const { rejections } = member();
    rejections.add(3, heard(hash(1), 'validator-1'));
    for (let height = 4; height < 40; height += 1) rejections.add(height, heard(hash(height)));
    const kept = rejections.all.map(({ docketNumber, vote }) => [docketNumber, vote.validatorId]);
    expect(kept).toHaveLength(9);
    expect(kept[0]).toEqual([3, 'validator-1']);
    expect(kept.at(-1)).toEqual([39, 'validator-2']);
    for (let index = 0; index < 200; index += 1) rejections.add(41, heard(hash(1), `other-${index}`));
    expect(rejections.all.length).toBeLessThanOrEqual(128 * 8);
    expect(rejections.all.some(({ vote }) => vote.validatorId === 'validator-1')).toBe(false);
  });

  test('are not new when known or over the bound of a height', () => {
    const { rejections } = member();
    const named = (docketHash: string, docketNumber = 4) => ({
      docketHash,
      docketNumber,
      validatorId: 'validator-2',
    });
    for (const byte of [1, 2, 3]) rejections.add(4, heard(hash(byte)));
    expect(rejections.isNew(named(hash(1)))).toBe(false);
    expect(rejections.isNew(named(hash(4)))).toBe(true);
    rejections.add(4, heard(hash(4)));
    expect(rejections.isNew(named(hash(5)))).toBe(false);
    expect(rejections.isNew(named(hash(5), 5))).toBe(true);
  });
});
