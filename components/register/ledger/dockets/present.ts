import type { z } from 'zod';
import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Certificate } from '#core/ledger/certificate.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { docketSchema } from './schemas.ts';
import type { StoredDocket } from './store.ts';

function presentVote(vote: ConsensusVote) {
  return {
    voteId: `${vote.docketHash}:${vote.validatorId}`,
    docketHash: vote.docketHash,
    validatorId: vote.validatorId,
    validatorAddress: vote.validatorAddress,
    approved: vote.approved,
    timestamp: vote.timestamp,
    signature: vote.signature,
    algorithm: vote.algorithm,
    publicKey: vote.publicKey,
    ...(vote.reason !== undefined && { reason: vote.reason }),
  };
}

/** A docket in a list: without transaction ids and transactions. */
export function presentDocket(
  registerId: string,
  docket: StoredDocket,
  votes: readonly ConsensusVote[],
): ReadonlyDeep<z.output<typeof docketSchema>> {
  const certificate: Certificate = JSON.parse(docket.certificate);
  return {
    docketId: String(docket.docket_number),
    registerId,
    docketNumber: docket.docket_number,
    hash: docket.hash,
    previousHash: docket.previous_hash,
    merkleRoot: docket.merkle_root,
    logRoot: docket.log_root,
    transactionCount: docket.transaction_count,
    timestamp: docket.timestamp,
    validatorAddress: docket.validator_address,
    isGenesis: docket.is_genesis,
    ...(docket.genesis_config !== null && { genesisConfig: docket.genesis_config }),
    state: 'Sealed',
    consensusState: 'Achieved',
    consensusVotes: votes.map(presentVote),
    certificate,
    validatorSetHash: docket.validator_set_hash,
    sizeBytes: docket.size_bytes,
  };
}
