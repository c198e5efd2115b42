import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import type { ListEvidenceResponse } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import type { PeerEvidence, Proof } from '../../chain/consensus/evidence.ts';
import { failure } from '../../errors.ts';
import type { ProvenEvidence } from '../../network/evidence/evidence.ts';
import { parseEvidence } from '../../network/transport/parse.ts';
import { wireEvidence } from '../../network/transport/wire.ts';

/** Evidence as one validator holds it. From another validator it is unverified. */
export interface HeldEvidence extends Proof {
  readonly evidence: PeerEvidence;
}

/** Upper bound of evidence read for one register, equal to what a validator keeps. */
const maxRead = 1_024;
const maxMembers = 128;

/** The evidence of one register as a protobuf message. */
export function wireHeld(known: readonly ProvenEvidence[]) {
  return {
    evidence: known.map(({ evidence, networkId, validatorSetHash, signers, seenAtMs }) => ({
      evidence: wireEvidence(evidence),
      networkId,
      validatorSetHash,
      signers: signers.map(({ validatorId, publicKey, algorithm }) => ({
        validatorId,
        publicKey,
        algorithm,
      })),
      seenAtMs: BigInt(seenAtMs),
    })),
  };
}

const signerSchema = z.object({
  validatorId: z.string().regex(/^[A-Za-z0-9._-]{1,128}$/),
  publicKey: z.string().regex(/^[A-Za-z0-9+/]{1,1022}={0,2}$/),
  algorithm: z.enum(ALGORITHMS),
});
const proofSchema = z.object({
  networkId: z.string().regex(/^[\x20-\x7e]{1,256}$/),
  validatorSetHash: z.string().regex(/^[0-9a-f]{64}$/),
  signers: z.array(signerSchema).min(1).max(maxMembers),
  seenAtMs: z.bigint().min(0n).max(8_640_000_000_000_000n).transform(Number),
});

/** Parses another validator's evidence. Throws AppError bad_gateway for malformed evidence. */
export function parseHeldEvidence({ evidence: all }: ListEvidenceResponse): readonly HeldEvidence[] {
  return all.slice(0, maxRead).map((each) => {
    const proof = proofSchema.safeParse(each);
    const evidence = each.evidence && parseEvidence(each.evidence);
    if (proof.success && evidence !== undefined) return { ...proof.data, evidence };
    throw failure('BAD_GATEWAY', { message: 'A validator returned malformed evidence' });
  });
}
