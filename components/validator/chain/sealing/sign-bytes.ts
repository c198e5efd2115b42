import type { Certificate } from '#core/ledger/certificate.ts';
import { CONSENSUS_TYPES, type ConsensusMessage } from '#core/ledger/consensus.ts';
import type { UnsignedMessage, Value, Vote } from '../consensus/messages.ts';
import type { OwnMessage } from '../records/entries.ts';
import type { RegisterState } from '../state/state.ts';

/** The identity of a voted value: two values are the same only when hash and both roots are equal. */
export function identity(value: Omit<Value, 'timestamp'>): string {
  return `${value.hash}${value.merkleRoot}${value.logRoot}`;
}

/** The set whose signatures count at a height, and the context that they sign. */
export type Voters = Pick<RegisterState, 'registerId' | 'networkId' | 'members' | 'membersHash'>;

/** The structured message from which the signing component and the certificate's verifier derive the sign-bytes. */
export function signable(state: Voters, message: UnsignedMessage, timestamp: string): ConsensusMessage {
  const value = message.value;
  return {
    type: CONSENSUS_TYPES[message.kind],
    networkId: state.networkId,
    registerId: state.registerId,
    height: message.height,
    round: message.round,
    polRound: message.kind === 'proposal' ? message.polRound : -1,
    docket: value && { docketHash: value.hash, merkleRoot: value.merkleRoot, logRoot: value.logRoot },
    validatorSetHash: state.membersHash,
    timestamp,
  };
}

/** Builds the certificate of a decision from the precommits of its round. */
export function certificateOf(
  state: Voters,
  decided: { height: number; round: number; value: Value; precommits: readonly Vote[] },
): Certificate {
  const { value } = decided;
  return {
    version: 1,
    height: decided.height,
    round: decided.round,
    docketHash: value.hash,
    merkleRoot: value.merkleRoot,
    logRoot: value.logRoot,
    validatorSetHash: state.membersHash,
    signatures: decided.precommits.map((vote) => ({
      validatorId: vote.validatorId,
      index: state.members.findIndex((member) => member.validatorId === vote.validatorId),
      timestamp: vote.timestamp,
      signature: vote.signature,
    })),
  };
}

/** The precommits that a certificate consists of. */
export function precommitsOf(certificate: Certificate): Vote[] {
  const { height, round, docketHash: hash, merkleRoot, logRoot } = certificate;
  return certificate.signatures.map(({ validatorId, timestamp, signature }) => ({
    kind: 'precommit',
    height,
    round,
    value: { hash, merkleRoot, logRoot },
    timestamp,
    validatorId,
    signature,
  }));
}

/** The prevotes of other members that were logged with an own message. */
export function loggedPolka({ message, valid, polka }: OwnMessage): Vote[] {
  if (valid === undefined || polka === undefined) return [];
  const { hash, merkleRoot, logRoot } = valid.value;
  const { height } = message;
  const { round } = valid;
  return polka.map((each) => ({
    kind: 'prevote',
    height,
    round,
    value: { hash, merkleRoot, logRoot },
    ...each,
  }));
}
