import type { MessageInitShape } from '@bufbuild/protobuf';
import { decodeBase64Any } from '#core/encoding/base64.ts';
import { decodeHex } from '#core/encoding/hex.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import { CONSENSUS_TYPES } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import {
  type GetCommitResponseSchema,
  RoundStep,
  type StreamRequestSchema,
} from '#protos/gen/chancery/validator/v1/consensus_pb.js';
import type { PeerEvidence } from '../../chain/consensus/evidence.ts';
import type { Proposal, Value, Vote } from '../../chain/consensus/messages.ts';
import type { CommitBundle, Envelope, RoundState } from './transport.ts';

type WireEnvelope = MessageInitShape<typeof StreamRequestSchema>;
type WireMessage = NonNullable<WireEnvelope['message']>;

/** An envelope as a protobuf message. */
export function wireEnvelope(envelope: Envelope): WireEnvelope {
  return { registerId: envelope.registerId, message: wireMessage(envelope) };
}

function wireMessage(envelope: Envelope): WireMessage {
  switch (envelope.kind) {
    case 'proposal': {
      const { proposal, header, recordHashes } = envelope;
      const value = { proposal: wireProposal(proposal), ...wireContent(header, recordHashes) };
      return { case: 'proposal', value };
    }
    case 'vote':
      return { case: 'vote', value: wireVote(envelope.vote) };
    case 'attestation': {
      const attestation = wireAttestation(envelope.vote);
      return { case: 'attestation', value: { docketNumber: BigInt(envelope.docketNumber), attestation } };
    }
    case 'round-state':
      return { case: 'roundState', value: wireRoundState(envelope) };
    case 'stored': {
      const { height, attested } = envelope;
      return { case: 'stored', value: { height: BigInt(height), attested: [...attested] } };
    }
    case 'heartbeat': {
      const { validatorId, atMs, version, draining } = envelope;
      const heads = envelope.heads.map((head) => ({ ...head, height: BigInt(head.height) }));
      return { case: 'heartbeat', value: { validatorId, atMs: BigInt(atMs), version, heads, draining } };
    }
    case 'hint': {
      const transactionIds = envelope.transactionIds.map((txId) => decodeHex(txId, 32));
      return { case: 'hint', value: { transactionIds, transactions: [...envelope.transactions] } };
    }
    case 'evidence':
      return { case: 'evidence', value: wireEvidence(envelope.evidence) };
  }
}

function wireContent(header: DocketHeader, recordHashes: readonly string[]) {
  return { header: wireHeader(header), recordHashes: recordHashes.map((hash) => decodeHex(hash, 32)) };
}

function wireValue(value: Omit<Value, 'timestamp'> | undefined) {
  if (value === undefined) return {};
  return {
    docketHash: decodeHex(value.hash, 32),
    merkleRoot: decodeHex(value.merkleRoot, 32),
    logRoot: decodeHex(value.logRoot, 32),
  };
}

function wireProposal({ height, round, polRound, value, validatorId, signature }: Proposal) {
  const { timestamp } = value;
  const position = { height: BigInt(height), round, polRound };
  return { ...position, ...wireValue(value), timestamp, validatorId, signature: decodeBase64Any(signature) };
}

function wireVote({ kind, height, round, value, timestamp, validatorId, signature }: Vote) {
  const position = { type: CONSENSUS_TYPES[kind], height: BigInt(height), round };
  return { ...position, ...wireValue(value), timestamp, validatorId, signature: decodeBase64Any(signature) };
}

const steps: Readonly<Record<RoundState['step'], RoundStep>> = {
  idle: RoundStep.IDLE,
  propose: RoundStep.PROPOSE,
  prevote: RoundStep.PREVOTE,
  precommit: RoundStep.PRECOMMIT,
  decided: RoundStep.DECIDED,
};

function wireRoundState(state: RoundState) {
  const { round, lockedRound, validRound, headHash, hasProposal, prevotes, precommits } = state;
  const heard = { hasProposal, prevotes: [...prevotes], precommits: [...precommits] };
  const position = { height: BigInt(state.height), round, step: steps[state.step] };
  return { ...position, lockedRound, validRound, headHash, ...heard };
}

function wireAttestation(vote: ConsensusVote) {
  return { ...vote, signature: decodeHex(vote.signature), reason: vote.reason ?? '' };
}

function wireHeader(header: DocketHeader) {
  return {
    ...header,
    transactionIds: [...header.transactionIds],
    docketNumber: BigInt(header.docketNumber),
    genesisConfig: header.genesisConfig ?? '',
    sizeBytes: BigInt(header.sizeBytes),
  };
}

function wireCertificate(certificate: Certificate) {
  const signatures = certificate.signatures.map((each) => ({
    ...each,
    signature: decodeBase64Any(each.signature),
  }));
  return { ...certificate, height: BigInt(certificate.height), signatures };
}

/** Evidence as a protobuf message. */
export function wireEvidence(evidence: PeerEvidence) {
  if (evidence.kind === 'conflicting-certificate') {
    const value = { first: wireCertificate(evidence.first), second: wireCertificate(evidence.second) };
    return { evidence: { case: 'conflictingCertificate', value } } as const;
  }
  const { first, second } = evidence;
  if (first.kind === 'proposal' && second.kind === 'proposal') {
    const value = { first: wireProposal(first), second: wireProposal(second) };
    return { evidence: { case: 'duplicateProposal', value } } as const;
  }
  if (first.kind === 'proposal' || second.kind === 'proposal') return {};
  return {
    evidence: { case: 'duplicateVote', value: { first: wireVote(first), second: wireVote(second) } },
  } as const;
}

/** A commit, or its absence, as a protobuf message. */
export function wireCommit(
  bundle: CommitBundle | undefined,
): MessageInitShape<typeof GetCommitResponseSchema> {
  if (bundle === undefined) return {};
  const { header, certificate, recordHashes } = bundle;
  return { ...wireContent(header, recordHashes), certificate: wireCertificate(certificate) };
}
