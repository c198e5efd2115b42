import type { Certificate } from '#core/ledger/certificate.ts';
import { CONSENSUS_TYPES, type ConsensusMessage } from '#core/ledger/consensus.ts';
import type { UnsignedMessage, Value, Vote } from '../consensus/messages.ts';
import type { OwnMessage } from '../log/entries.ts';
import type { RegisterState } from './state.ts';

/** Names what is voted on: two values are one only when hash and both roots agree (W-01). */
export function identity(value: Omit<Value, 'timestamp'>): string {
  return `${value.hash}${value.merkleRoot}${value.logRoot}`;
}

/** Whose signatures count at a height, and in what they are made. */
export type Voters = Pick<RegisterState, 'registerId' | 'networkId' | 'members' | 'membersHash'>;

/** The structured message that the signing component and the certificate's verifier make the sign bytes of. */
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

/** The proof of a decision, from the precommits of its round. */
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

/** The precommits that a certificate is made of. */
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

/** The prevotes of other members that an own message was logged with. */
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
