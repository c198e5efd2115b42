import { sha256Hex } from '#core/crypto/hash.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { canonicalJson } from '#core/encoding/jcs.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import type { ValidatorMember } from '#core/ledger/consensus.ts';
import type { PeerEvidence, Proof } from '../../chain/consensus/evidence.ts';
import type { Message } from '../../chain/consensus/messages.ts';
import { agrees } from '../../chain/consensus/round.ts';
import { identity } from '../../chain/sealing/sign-bytes.ts';
import { isAuthentic } from './authenticate.ts';
import type { PastVoters } from './voter-history.ts';

export interface ProvenEvidence extends Proof {
  /** Lower hex, equal at every member: one per height, round and step at which a validator signs once. */
  readonly id: string;
  readonly evidence: PeerEvidence;
  readonly height: number;
  /** The members that the evidence convicts. */
  readonly validatorIds: readonly string[];
}

/** Bound per validator of a register, and for conflicting certificates. */
const maxPerValidator = 8;

/** 'known': already held, or over its bound; 'unjudged': the set of that height is unknown here; 'false': not a proof. */
type EvidenceVerdict = 'new' | 'known' | 'unjudged' | 'false';

/** Proven faults of register members, the first ones of each, bounded. Only evidence that any third party can verify counts. */
export class EvidencePool {
  readonly #registers = new Map<string, Map<string, ProvenEvidence>>();

  list(registerId: string): readonly ProvenEvidence[] {
    return [...(this.#registers.get(registerId)?.values() ?? [])];
  }

  find(registerId: string, evidence: PeerEvidence): ProvenEvidence | undefined {
    return this.#registers.get(registerId)?.get(evidenceId(registerId, evidence));
  }

  get size(): number {
    let size = 0;
    for (const known of this.#registers.values()) size += known.size;
    return size;
  }

  /** Registers with evidence. */
  get registers(): readonly string[] {
    return [...this.#registers.keys()];
  }

  /** Restores evidence from the log after a restart. */
  restoreEvidence(registerId: string, evidence: PeerEvidence, proof: Proof): void {
    const known = provenOf(registerId, evidence, proof);
    if (!this.#isFull(registerId, known)) this.#keep(registerId, known);
  }

  /** Verifies and adds evidence. Duplicates and evidence over its bound are not verified. */
  take(
    registerId: string,
    evidence: PeerEvidence,
    judge: { readonly voters: PastVoters | undefined; readonly verifier: Verifier; readonly nowMs: number },
  ): EvidenceVerdict {
    const { voters, verifier, nowMs } = judge;
    if (this.find(registerId, evidence) !== undefined) return 'known';
    if (voters === undefined) return 'unjudged';
    const signers = signersOf(evidence, voters.members);
    const { networkId, membersHash: validatorSetHash } = voters;
    const proof = { networkId, validatorSetHash, signers, seenAtMs: nowMs };
    const known = provenOf(registerId, evidence, proof);
    if (this.#isFull(registerId, known)) return 'known';
    if (!isProof(voters, evidence, verifier)) return 'false';
    this.#keep(registerId, known);
    return 'new';
  }

  #keep(registerId: string, known: ProvenEvidence): void {
    const all = this.#registers.get(registerId) ?? new Map<string, ProvenEvidence>();
    this.#registers.set(registerId, all);
    if (!all.has(known.id)) all.set(known.id, known);
  }

  #isFull(registerId: string, { evidence }: ProvenEvidence): boolean {
    const group = groupOf(evidence);
    return this.list(registerId).filter((each) => groupOf(each.evidence) === group).length >= maxPerValidator;
  }
}

/** Pieces of evidence that share one bound. */
function groupOf(evidence: PeerEvidence): string {
  return evidence.kind === 'conflicting-certificate' ? '' : evidence.first.validatorId;
}

function provenOf(registerId: string, evidence: PeerEvidence, proof: Proof): ProvenEvidence {
  return {
    ...proof,
    id: evidenceId(registerId, evidence),
    evidence,
    height: evidence.first.height,
    validatorIds: convictedBy(evidence),
  };
}

function signersOf(evidence: PeerEvidence, members: readonly ValidatorMember[]): readonly ValidatorMember[] {
  if (evidence.kind === 'conflicting-certificate') return members;
  return members.filter(({ validatorId }) => validatorId === evidence.first.validatorId);
}

/** Whether the evidence proves a fault of members of the set. */
export function isProof(voters: PastVoters, evidence: PeerEvidence, verifier: Verifier): boolean {
  if (evidence.kind !== 'conflicting-certificate') {
    const { first, second } = evidence;
    return (
      isConflict(evidence.kind, first, second) &&
      [first, second].every((message) => isAuthentic(voters, message, verifier))
    );
  }
  const { first, second } = evidence;
  if (first.height !== second.height || certified(first) === certified(second)) return false;
  const { members, networkId, registerId, quorumMin } = voters;
  const context = { members, networkId, registerId, signatureThresholdMin: quorumMin, verifier };
  return [first, second].every((certificate) => verifyCertificate(certificate, context).length === 0);
}

function isConflict(kind: 'duplicate-proposal' | 'duplicate-vote', a: Message, b: Message): boolean {
  const isOfKind = kind === 'duplicate-proposal' ? a.kind === 'proposal' : a.kind !== 'proposal';
  const isOnePosition =
    a.kind === b.kind && a.height === b.height && a.round === b.round && a.validatorId === b.validatorId;
  return isOfKind && isOnePosition && !agrees(a, b);
}

function certified(certificate: { docketHash: string; merkleRoot: string; logRoot: string }): string {
  return identity({ ...certificate, hash: certificate.docketHash });
}

/** Lower hex, one per height, round and step at which a validator signs once: a third message there proves nothing new. */
export function evidenceId(registerId: string, evidence: PeerEvidence): string {
  const { height } = evidence.first;
  if (evidence.kind === 'conflicting-certificate') {
    return sha256Hex(canonicalJson({ registerId, kind: evidence.kind, height }));
  }
  const { kind: step, round, validatorId } = evidence.first;
  return sha256Hex(canonicalJson({ registerId, height, round, step, validatorId }));
}

/** For two certificates, the members that signed both: twice in one round, or in two rounds for two dockets. */
export function convictedBy(evidence: PeerEvidence): string[] {
  if (evidence.kind !== 'conflicting-certificate') return [evidence.first.validatorId];
  const others = new Set(evidence.second.signatures.map((each) => each.validatorId));
  return evidence.first.signatures.flatMap(({ validatorId }) => (others.has(validatorId) ? validatorId : []));
}
