import { describe, expect, it } from 'vitest';
import { utf8 } from '../encoding/text.ts';
import {
  CONSENSUS_TYPES,
  type ConsensusMessage,
  faultTolerance,
  maxSetChanges,
  proposerOf,
  quorum,
  signBytes,
  sortMembers,
  type ValidatorMember,
  validatorSetHash,
} from './consensus.ts';
import { buildHeader, checkDocketText, type DocketDraft, judgeHeader, judgeSuccession } from './docket.ts';
import { logLeaf } from './log.ts';
import { Frontier, leafHash } from './merkle.ts';
import { ZERO_HASH } from './register-id.ts';

const leaves = [leafHash(utf8('one')), leafHash(utf8('two'))];
const draft: DocketDraft = {
  registerId: '0123456789abcdef0123456789abcdef',
  docketNumber: 0,
  previousHash: ZERO_HASH,
  timestamp: '2026-11-21T10:00:00.0000000+00:00',
  validatorAddress: 'w1ql5gs6vqa9urhmc2pfw8enazpk9qrl2eq0vs9977jcpj7fm5w0hpqx3zqnu',
  transactionIds: ['a'.repeat(64), 'b'.repeat(64)],
  validatorSetHash: 'c'.repeat(64),
  genesisConfig: '{}',
  sizeBytes: 20,
};
const genesis = buildHeader(draft, leaves, Frontier.empty());
const log = Frontier.empty();
log.append(logLeaf(genesis));
const next = buildHeader(
  {
    ...draft,
    docketNumber: 1,
    previousHash: genesis.hash,
    timestamp: '2026-11-21T10:00:00.0000010+00:00',
    genesisConfig: undefined,
  },
  leaves,
  log,
);

describe('docket text', () => {
  it.each([
    ['registerId', { registerId: 'A'.repeat(32) }],
    ['registerId', { registerId: '' }],
    ['docketNumber', { docketNumber: -1 }],
    ['docketNumber', { docketNumber: 1.5 }],
    ['previousHash', { previousHash: 'z'.repeat(64) }],
    ['timestamp', { timestamp: '2026-11-21T10:00:00|' }],
    ['validatorAddress', { validatorAddress: 'a|b' }],
    ['validatorAddress', { validatorAddress: '' }],
    ['validatorAddress', { validatorAddress: 'ä' }],
    ['transactionIds', { transactionIds: ['a'] }],
    ['transactionIds', { transactionIds: ['a'.repeat(64), 'a'.repeat(64)] }],
    ['transactionIds', { transactionIds: [] }],
  ])('%s of %j is refused', (field, change) => {
    expect(checkDocketText({ ...draft, ...change }).map((each) => each.field)).toEqual([field]);
    expect(() => buildHeader({ ...draft, ...change }, leaves, log)).toThrow();
  });
});

describe('headers', () => {
  it('are valid with the log they were built on, which is not changed', () => {
    expect(judgeHeader(genesis, leaves, Frontier.empty())).toEqual([]);
    expect(judgeHeader(next, leaves, log)).toEqual([]);
    expect(log.size).toBe(1);
  });

  it.each([
    ['HASH_MISMATCH', { hash: 'd'.repeat(64) }],
    ['HASH_MISMATCH', { timestamp: '2026-11-21T10:00:00.0000020+00:00' }],
    ['HASH_MISMATCH', { transactionIds: next.transactionIds.toReversed() }],
    ['MERKLE_MISMATCH', { merkleRoot: 'd'.repeat(64) }],
    ['MERKLE_MISMATCH', { logRoot: 'd'.repeat(64) }],
    ['MERKLE_MISMATCH', { validatorSetHash: 'd'.repeat(64) }],
    ['HASH_MISMATCH', { isGenesis: true }],
    ['HASH_MISMATCH', { genesisConfig: '{}' }],
    ['REGISTER_ID_REQUIRED', { registerId: '' }],
  ])('%s for %j', (code, change) => {
    expect(judgeHeader({ ...next, ...change }, leaves, log).map((each) => each.code)).toEqual([code]);
  });

  it('another list of records, a shorter one and another log are refused', () => {
    const codes = (own: readonly Uint8Array[], before: Frontier) =>
      judgeHeader(next, own, before).map(({ code }) => code);
    expect(codes(leaves.toReversed(), log)).toEqual(['MERKLE_MISMATCH']);
    expect(codes(leaves.slice(1), log)).toEqual(['MERKLE_MISMATCH']);
    expect(codes(leaves, Frontier.empty())).toEqual(['MERKLE_MISMATCH']);
  });

  it('follow the head by number, hash and time', () => {
    const codes = (change: object, head: typeof genesis | undefined = genesis) =>
      judgeSuccession({ ...next, ...change }, head).map(({ code }) => code);
    expect(codes({})).toEqual([]);
    expect(codes({ docketNumber: 2 })).toEqual(['DOCKET_NUMBER_SEQUENCE']);
    expect(codes({ previousHash: ZERO_HASH })).toEqual(['PREVIOUS_HASH_MISMATCH']);
    expect(codes({ timestamp: genesis.timestamp })).toEqual(['TIMESTAMP_NOT_AFTER_PREVIOUS']);
    expect(codes({ timestamp: '2026-11-21T11:00:00.0000000+01:00' })).toEqual([
      'TIMESTAMP_NOT_AFTER_PREVIOUS',
    ]);
    expect(judgeSuccession(next, undefined).map(({ code }) => code)).toEqual(['PREVIOUS_DOCKET_REQUIRED']);
    expect(judgeSuccession(genesis, undefined)).toEqual([]);
    const based = { ...genesis, previousHash: next.hash };
    expect(judgeSuccession(based, undefined).map(({ code }) => code)).toEqual([
      'GENESIS_REQUIRES_NO_PREVIOUS',
    ]);
  });
});

describe('consensus', () => {
  it('quorums of small sets', () => {
    const table = [1, 2, 3, 4, 5, 7, 10, 100].map((size) => [
      size,
      faultTolerance(size),
      quorum(size),
      maxSetChanges(size),
    ]);
    expect(table).toEqual([
      [1, 0, 1, 1],
      [2, 0, 2, 1],
      [3, 0, 3, 1],
      [4, 1, 3, 1],
      [5, 1, 4, 1],
      [7, 2, 5, 2],
      [10, 3, 7, 3],
      [100, 33, 67, 33],
    ]);
    expect(quorum(4, 4)).toBe(4);
    expect(quorum(4, 10)).toBe(4);
    expect(quorum(4, 2)).toBe(3);
  });

  it('two quorums always share an honest member', () => {
    for (let size = 1; size <= 100; size += 1) {
      expect(2 * quorum(size) - size).toBeGreaterThan(faultTolerance(size));
      expect(size - faultTolerance(size)).toBeGreaterThanOrEqual(quorum(size));
    }
  });

  const member = (name: string): ValidatorMember => ({
    validatorId: name,
    publicKey: `key ${name}`,
    algorithm: 'ED25519',
  });

  it('proposers rotate over the sorted set', () => {
    const members = sortMembers(['c', 'a', 'b'].map(member));
    const order = [0, 1, 2, 3].map((height) => proposerOf(members, height, 0).validatorId);
    expect(order).toEqual(['a', 'b', 'c', 'a']);
    expect(proposerOf(members, 1, 1).validatorId).toBe('c');
    expect(() => proposerOf([], 0, 0)).toThrow(expect.objectContaining({ code: 'INVALID_VALIDATOR_SET' }));
  });

  it.each([
    ['nobody', []],
    ['a name twice', [member('a'), { ...member('b'), validatorId: 'a' }]],
    ['a key twice', [member('a'), { ...member('b'), publicKey: 'key a' }]],
    ['a name outside the alphabet', [member('a b')]],
    ['a name that is empty', [member('')]],
  ])('a set of %s has no hash', (_name, members) => {
    expect(() => validatorSetHash(members)).toThrow(
      expect.objectContaining({ code: 'INVALID_VALIDATOR_SET' }),
    );
  });

  const vote: ConsensusMessage = {
    type: CONSENSUS_TYPES.prevote,
    networkId: 'acme',
    registerId: draft.registerId,
    height: 1,
    round: 0,
    polRound: -1,
    docket: { docketHash: next.hash, merkleRoot: next.merkleRoot, logRoot: next.logRoot },
    validatorSetHash: draft.validatorSetHash,
    timestamp: draft.timestamp,
  };

  it('no two messages have the same bytes', () => {
    const messages: ConsensusMessage[] = [
      vote,
      { ...vote, type: CONSENSUS_TYPES.precommit },
      { ...vote, type: CONSENSUS_TYPES.proposal },
      { ...vote, type: CONSENSUS_TYPES.proposal, round: 2, polRound: 1 },
      { ...vote, networkId: 'acm' },
      { ...vote, registerId: 'f'.repeat(32) },
      { ...vote, height: 2 },
      { ...vote, round: 1 },
      { ...vote, docket: undefined },
      { ...vote, validatorSetHash: 'd'.repeat(64) },
      { ...vote, timestamp: '' },
    ];
    const texts = messages.map((message) => Buffer.from(signBytes(message)).toString('hex'));
    expect(new Set(texts).size).toBe(messages.length);
  });

  it.each<Partial<ConsensusMessage>>([
    { polRound: 0, round: 1 },
    { type: CONSENSUS_TYPES.proposal, docket: undefined },
    { type: CONSENSUS_TYPES.proposal, polRound: 0 },
    { type: CONSENSUS_TYPES.proposal, polRound: -2 },
    { height: -1 },
    { height: 0.5 },
    { round: -1 },
    { round: 2 ** 31 },
    { networkId: 'a'.repeat(70_000) },
    { networkId: '\ud800' },
    { registerId: 'f' },
    { validatorSetHash: '' },
  ])('%j is refused', (change) => {
    expect(() => signBytes({ ...vote, ...change })).toThrow(expect.objectContaining({ kind: 'invalid' }));
  });
});
