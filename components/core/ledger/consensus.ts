import { type Algorithm, isAlgorithm } from '../crypto/algorithm.ts';
import { decodeHex, encodeHex } from '../encoding/hex.ts';
import { canonicalBytes } from '../encoding/jcs.ts';
import { compareCodeUnits, concatBytes, utf8 } from '../encoding/text.ts';
import { AppError } from '../errors/errors.ts';
import { leafHash, root } from './merkle.ts';
import { ZERO_HASH } from './register-id.ts';

/** Kinds of signed consensus messages and their number in the sign bytes. */
export const CONSENSUS_TYPES = { proposal: 1, prevote: 2, precommit: 3 } as const;
export type ConsensusType = (typeof CONSENSUS_TYPES)[keyof typeof CONSENSUS_TYPES];

/** One member of a validator set. */
export interface ValidatorMember {
  readonly validatorId: string;
  /** Standard padded base64 of the canonical key form. */
  readonly publicKey: string;
  readonly algorithm: Algorithm;
}

/** The docket that a proposal or vote names; a nil vote names none. Lower-case hex. */
interface DocketRoots {
  readonly docketHash: string;
  readonly merkleRoot: string;
  readonly logRoot: string;
}

/** Everything that a consensus signature covers. */
export interface ConsensusMessage {
  readonly type: ConsensusType;
  /** The installation that created the register, as in genesisConfig. */
  readonly networkId: string;
  readonly registerId: string;
  /** The docket's number. */
  readonly height: number;
  readonly round: number;
  /** Proposals: the round of the polka that the proposal shows, -1 for none. Votes: always -1. */
  readonly polRound: number;
  /** Undefined is a nil vote. */
  readonly docket: DocketRoots | undefined;
  readonly validatorSetHash: string;
  readonly timestamp: string;
}

const DOMAIN = 'platform:consensus:v1\n';
const MAX_ROUND = 0x7fff_ffff;

function refuse(reason: string): never {
  throw new AppError('invalid', 'INVALID_CONSENSUS_MESSAGE', reason);
}

function lengthPrefixed(text: string): Uint8Array {
  const bytes = utf8(text);
  if (bytes.length > 0xffff || !text.isWellFormed()) refuse('A text is too long or not well-formed');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(bytes.length);
  return concatBytes([length, bytes]);
}

function numbersOf(message: ConsensusMessage): Uint8Array {
  const { height, round, polRound } = message;
  if (!Number.isSafeInteger(height) || height < 0) refuse('Height is not a whole number from 0');
  if (!Number.isInteger(round) || round < 0 || round > MAX_ROUND) refuse('Round is out of range');
  const earlier = Number.isInteger(polRound) && polRound >= -1 && polRound < round;
  if (!earlier) refuse('The polka is not of an earlier round');
  const bytes = Buffer.alloc(16);
  bytes.writeBigUInt64BE(BigInt(height), 0);
  bytes.writeUInt32BE(round, 8);
  bytes.writeInt32BE(polRound, 12);
  return bytes;
}

/**
 * The bytes that a proposal, prevote or precommit signs: domain, type, networkId, register,
 * height, round, polRound, docket hash, both roots, validator set, timestamp. Nil: zeros for hash and roots.
 * @throws AppError invalid INVALID_CONSENSUS_MESSAGE or INVALID_HEX for fields out of their range
 */
export function signBytes(message: ConsensusMessage): Uint8Array {
  const { type, docket } = message;
  if (type === CONSENSUS_TYPES.proposal) {
    if (docket === undefined) refuse('A proposal names a docket');
  } else if (message.polRound !== -1) refuse('Votes show no polka');
  return concatBytes([
    utf8(DOMAIN),
    Uint8Array.of(type),
    lengthPrefixed(message.networkId),
    decodeHex(message.registerId, 16),
    numbersOf(message),
    decodeHex(docket?.docketHash ?? ZERO_HASH, 32),
    decodeHex(docket?.merkleRoot ?? ZERO_HASH, 32),
    decodeHex(docket?.logRoot ?? ZERO_HASH, 32),
    decodeHex(message.validatorSetHash, 32),
    lengthPrefixed(message.timestamp),
  ]);
}

/** The members in the order that indexes, proposers and the set hash use: by validatorId. */
export function sortMembers(members: readonly ValidatorMember[]): ValidatorMember[] {
  return members.toSorted((left, right) => compareCodeUnits(left.validatorId, right.validatorId));
}

/**
 * Hash of a validator set: RFC 6962 root over the canonical JSON of its members in order, lower-case hex.
 * @throws AppError invalid INVALID_VALIDATOR_SET when it is empty, contains an id or a key twice, or an id has
 * characters outside A-Z a-z 0-9 . _ -
 */
export function validatorSetHash(members: readonly ValidatorMember[]): string {
  const sorted = sortMembers(members);
  const ids = new Set(sorted.map((member) => member.validatorId));
  const keys = new Set(sorted.map((member) => member.publicKey));
  const plain = sorted.every(
    (member) => /^[A-Za-z0-9._-]{1,128}$/.test(member.validatorId) && isAlgorithm(member.algorithm),
  );
  if (sorted.length === 0 || !plain || ids.size !== sorted.length || keys.size !== sorted.length) {
    throw new AppError(
      'invalid',
      'INVALID_VALIDATOR_SET',
      'Validator set is empty, repeats a member or is malformed',
    );
  }
  const leaves = sorted.map(({ validatorId, publicKey, algorithm }) =>
    leafHash(canonicalBytes({ validatorId, publicKey, algorithm })),
  );
  return encodeHex(root(leaves));
}

/** Quorum of n members: max(floor(2n/3) + 1, min(signatureThresholdMin, n)). */
export function quorum(size: number, signatureThresholdMin = 1): number {
  return Math.max(Math.floor((2 * size) / 3) + 1, Math.min(signatureThresholdMin, size));
}

/** Number of faulty members that n members tolerate: floor((n - 1) / 3). */
export function faultTolerance(size: number): number {
  return Math.max(0, Math.floor((size - 1) / 3));
}

/** Maximum number of members that may change in one docket: max(1, floor(n / 3)). */
export function maxSetChanges(size: number): number {
  return Math.max(1, Math.floor(size / 3));
}

/**
 * The proposer of a round: index (height + round) mod n of the set.
 * @param members the set in the order of sortMembers: the members themselves or their ids
 * @throws AppError invalid INVALID_VALIDATOR_SET for an empty set
 */
export function proposerOf<Member>(members: readonly Member[], height: number, round: number): Member {
  const member = members[(height + round) % Math.max(1, members.length)];
  if (member === undefined) throw new AppError('invalid', 'INVALID_VALIDATOR_SET', 'Validator set is empty');
  return member;
}
