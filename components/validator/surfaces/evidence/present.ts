import type { z } from 'zod';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { CONSENSUS_TYPES, signBytes } from '#core/ledger/consensus.ts';
import { findSuspension } from '#core/ledger/governance/observers.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import type { Message } from '../../chain/consensus/messages.ts';
import { signable } from '../../chain/sealing/sign-bytes.ts';
import { convictedBy } from '../../network/evidence/evidence.ts';
import type { CollectedEvidence, EvidenceCollection } from './collect.ts';
import type { evidenceSchema } from './schemas.ts';
import type { HeldEvidence } from './wire.ts';

/** The answer of `GET /api/admin/validators/{registerId}/evidence`. */
export function presentEvidence({
  rules,
  evidence,
  unreachable,
}: EvidenceCollection): ReadonlyDeep<z.output<typeof evidenceSchema>> {
  return {
    registerId: rules.registerId,
    evidence: evidence.map((each) => presentOne(rules, each)),
    unreachable,
  };
}

function presentOne(rules: LedgerRules, { id, held, heldBy, firstSeenAtMs }: CollectedEvidence) {
  const { evidence, signers } = held;
  const { first } = evidence;
  const isOfOne = evidence.kind !== 'conflicting-certificate';
  const validatorIds = convictedBy(evidence);
  const [validatorId = ''] = validatorIds;
  return {
    id,
    kind: evidence.kind,
    validatorId: isOfOne ? validatorId : null,
    validatorIds,
    height: first.height,
    round: isOfOne ? first.round : null,
    step: 'kind' in first ? first.kind : null,
    signers: signers.map(({ validatorId: signer, publicKey, algorithm }) => ({
      validatorId: signer,
      publicKey,
      algorithm,
    })),
    ...presentPair(rules.registerId, held),
    heldBy,
    firstSeenAt: new Date(firstSeenAtMs).toISOString(),
    proposalId: isOfOne ? (findSuspension(rules, validatorId)?.proposalId ?? null) : null,
  };
}

function presentPair(registerId: string, held: HeldEvidence) {
  const { evidence, networkId } = held;
  if (evidence.kind === 'conflicting-certificate') {
    return { first: { networkId, ...evidence.first }, second: { networkId, ...evidence.second } };
  }
  return {
    first: presentMessage(registerId, held, evidence.first),
    second: presentMessage(registerId, held, evidence.second),
  };
}

/** A message with its exact sign-bytes and all fields that they are made of. */
function presentMessage(registerId: string, held: HeldEvidence, message: Message) {
  const { networkId, validatorSetHash: membersHash, signers: members } = held;
  const timestamp = message.kind === 'proposal' ? message.value.timestamp : message.timestamp;
  const signed = signable({ registerId, networkId, members, membersHash }, message, timestamp);
  return {
    ...signed,
    type: CONSENSUS_TYPES[message.kind],
    docket: signed.docket ?? null,
    signBytes: encodeBase64(signBytes(signed)),
    signature: message.signature,
  };
}
