import { encodeBase64 } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { findTimestamp, formatLedgerTimestamp, ticksToMicros } from '#core/encoding/timestamp.ts';
import { type ConsensusVote, voteBytes } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { CONSENSUS_TYPES, quorum, signBytes, sortMembers, validatorSetHash } from '#core/ledger/consensus.ts';
import { genesisConfigText, parseControlRecord } from '#core/ledger/control-record.ts';
import { buildHeader, type DocketHeader } from '#core/ledger/docket.ts';
import { parseRecord, recordLeaf } from '#core/ledger/record.ts';
import { ZERO_HASH } from '#core/ledger/register-id.ts';
import type { DocketBundle, SealedTransaction } from '../ledger/dockets/docket.ts';
import type { ChainState } from '../ledger/writing/verify.ts';
import type { TestKey } from './keys.ts';

export interface TestMember {
  readonly validatorId: string;
  readonly key: TestKey;
}

const setOf = (members: readonly TestMember[]) =>
  sortMembers(
    members.map(({ validatorId, key }) => ({
      validatorId,
      publicKey: key.publicKey,
      algorithm: key.algorithm,
    })),
  );

/** Precommits of these members in one round over a docket. */
export function buildCertificate(
  header: DocketHeader,
  voters: readonly TestMember[],
  at: { readonly networkId: string; readonly round: number; readonly members: readonly TestMember[] },
): Certificate {
  const sorted = setOf(at.members);
  const { hash: docketHash, merkleRoot, logRoot } = header;
  const votes = voters.map(({ validatorId, key }) => {
    const message = signBytes({
      type: CONSENSUS_TYPES.precommit,
      networkId: at.networkId,
      registerId: header.registerId,
      height: header.docketNumber,
      round: at.round,
      polRound: -1,
      docket: { docketHash, merkleRoot, logRoot },
      validatorSetHash: header.validatorSetHash,
      timestamp: header.timestamp,
    });
    return {
      validatorId,
      index: sorted.findIndex((member) => member.validatorId === validatorId),
      timestamp: header.timestamp,
      signature: encodeBase64(key.signer.sign(message)),
    };
  });
  return {
    version: 1,
    height: header.docketNumber,
    round: at.round,
    docketHash,
    merkleRoot,
    logRoot,
    validatorSetHash: header.validatorSetHash,
    signatures: votes.toSorted((left, right) => left.index - right.index),
  };
}

export function buildVote(
  header: DocketHeader,
  { validatorId, key }: TestMember,
  approved = true,
): ConsensusVote {
  const facts = {
    docketHash: header.hash,
    validatorAddress: key.walletAddress,
    approved,
    timestamp: header.timestamp,
  };
  const signature = encodeHex(key.signer.sign(voteBytes(facts)));
  return { ...facts, signature, validatorId, algorithm: key.algorithm, publicKey: key.publicKey };
}

/** The docket that follows `state` with these transactions, as honest members would seal it. */
export function buildDocket(
  state: ChainState,
  transactions: readonly SealedTransaction[],
  members: readonly TestMember[],
): DocketBundle {
  const records = transactions.map((one) => parseRecord(one.record));
  const isGenesis = state.height === 0;
  const [first] = records;
  const [sealer] = members;
  if (first === undefined || sealer === undefined) throw new Error('a docket has transactions and a sealer');
  const previous =
    state.head === undefined ? 0n : ticksToMicros(findTimestamp(state.head.timestamp) ?? 0n) + 1n;
  const now = BigInt(Date.now()) * 1000n;
  const payload: unknown = isGenesis
    ? JSON.parse(Buffer.from(transactions[0]?.payload ?? []).toString())
    : undefined;
  const draft = {
    registerId: state.registerId,
    docketNumber: state.height,
    previousHash: state.head?.hash ?? ZERO_HASH,
    timestamp: isGenesis ? first.createdAt : formatLedgerTimestamp(previous > now ? previous : now),
    validatorAddress: sealer.key.walletAddress,
    transactionIds: records.map((record) => record.txId),
    validatorSetHash: validatorSetHash(setOf(members)),
    genesisConfig: isGenesis ? genesisConfigText(parseControlRecord(payload), state.networkId) : undefined,
    sizeBytes: transactions.reduce((sum, one) => sum + one.record.length, 0),
  };
  const leaves = transactions.map((one) => recordLeaf(one.record));
  const header = buildHeader(draft, leaves, state.frontier);
  const voters = setOf(members)
    .slice(0, quorum(members.length))
    .flatMap((each) => members.find((member) => member.validatorId === each.validatorId) ?? []);
  const certificate = buildCertificate(header, voters, { networkId: state.networkId, round: 0, members });
  return { header, certificate, transactions, attestations: [buildVote(header, sealer)] };
}
