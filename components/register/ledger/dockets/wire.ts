import { isAlgorithm } from '#core/crypto/algorithm.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { AppError } from '#core/errors/errors.ts';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Attestation, WriteDocketRequest } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { DocketBundle } from './docket.ts';

export function requireMember<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new AppError('invalid', 'INVALID_REQUEST', `${name} is missing.`);
  return value;
}

/** A vote from its protobuf message; its content is judged when it is stored. */
export function voteOf(attestation: Attestation): ConsensusVote {
  const { algorithm, reason } = attestation;
  if (!isAlgorithm(algorithm)) throw new AppError('invalid', 'VAL_SIG_001', 'The algorithm is not known.');
  return {
    docketHash: attestation.docketHash,
    validatorId: attestation.validatorId,
    validatorAddress: attestation.validatorAddress,
    approved: attestation.approved,
    timestamp: attestation.timestamp,
    algorithm,
    publicKey: attestation.publicKey,
    signature: encodeHex(attestation.signature),
    ...(reason !== '' && { reason }),
  };
}

/** A wire number; out of range when a JavaScript number cannot hold it exactly. */
export function wholeOf(value: bigint): number {
  if (value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  throw new AppError('invalid', 'INVALID_REQUEST', 'A number is out of its range.');
}

/** A docket from its protobuf message; its content is judged by the write. */
export function bundleOf(request: WriteDocketRequest): DocketBundle {
  const header = requireMember(request.header, 'header');
  const certificate = requireMember(request.certificate, 'certificate');
  return {
    header: {
      registerId: requireMember(findRegisterId(header.registerId), 'registerId'),
      docketNumber: wholeOf(header.docketNumber),
      previousHash: header.previousHash,
      timestamp: header.timestamp,
      validatorAddress: header.validatorAddress,
      transactionIds: header.transactionIds,
      merkleRoot: header.merkleRoot,
      logRoot: header.logRoot,
      validatorSetHash: header.validatorSetHash,
      hash: header.hash,
      isGenesis: header.isGenesis,
      ...(header.genesisConfig !== '' && { genesisConfig: header.genesisConfig }),
      sizeBytes: wholeOf(header.sizeBytes),
    },
    certificate: {
      version: 1,
      height: wholeOf(certificate.height),
      round: certificate.round,
      docketHash: certificate.docketHash,
      merkleRoot: certificate.merkleRoot,
      logRoot: certificate.logRoot,
      validatorSetHash: certificate.validatorSetHash,
      signatures: certificate.signatures.map(({ validatorId, index, timestamp, signature }) => ({
        validatorId,
        index,
        timestamp,
        signature: encodeBase64(signature),
      })),
    },
    transactions: request.transactions,
    attestations: request.attestations.map(voteOf),
  };
}
