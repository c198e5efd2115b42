import type { Verifier } from '#core/crypto/verify.ts';
import { verifyCertificate } from '#core/ledger/certificate.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Message } from '../consensus/messages.ts';
import { agrees } from '../consensus/round.ts';
import { identity, type Voters } from '../sealing/sign-bytes.ts';
import { isAuthentic } from './authentic.ts';
import type { PeerEvidence } from './transport.ts';

export interface EvidenceOptions {
  readonly verifier: Verifier;
  readonly log: Logger;
  /** Who voted at a height; undefined when that is not remembered. */
  votersAt(registerId: string, height: number): (Voters & { readonly quorumMin: number }) | undefined;
  counted(kind: PeerEvidence['kind']): void;
  /** New and proven: the others should know. */
  onProven(registerId: string, evidence: PeerEvidence): void;
}

export interface KnownEvidence {
  readonly evidence: PeerEvidence;
  readonly height: number;
  /** The members that it convicts. */
  readonly validatorIds: readonly string[];
}

const mostKept = 64;

/** Proven faults of one register's members, the first ones, bounded (L-116: only what anybody can check counts). */
export class EvidencePool {
  readonly #options: EvidenceOptions;
  readonly #registers = new Map<string, Map<string, KnownEvidence>>();

  constructor(options: EvidenceOptions) {
    this.#options = options;
  }

  list(registerId: string): readonly KnownEvidence[] {
    return [...(this.#registers.get(registerId)?.values() ?? [])];
  }

  /** What was proven before a restart. */
  recall(registerId: string, evidence: PeerEvidence): void {
    const known = this.#registers.get(registerId) ?? new Map<string, KnownEvidence>();
    this.#registers.set(registerId, known);
    const validatorIds = convictedBy(evidence);
    if (known.size < mostKept) {
      known.set(nameOf(evidence), { evidence, height: heightOf(evidence), validatorIds });
    }
  }

  /** False when it proves nothing. What is known already, or cannot be judged any more, is not looked at again. */
  take(registerId: string, evidence: PeerEvidence): boolean {
    const known = this.#registers.get(registerId) ?? new Map<string, KnownEvidence>();
    const name = nameOf(evidence);
    if (known.has(name) || known.size >= mostKept) return true;
    const voters = this.#options.votersAt(registerId, heightOf(evidence));
    if (voters === undefined) return true;
    if (!this.#isProof(voters, evidence)) return false;
    this.#registers.set(registerId, known);
    const found = { evidence, height: heightOf(evidence), validatorIds: convictedBy(evidence) };
    known.set(name, found);
    const { kind } = evidence;
    const { height, validatorIds } = found;
    this.#options.counted(kind);
    this.#options.log.error({ registerId, height, kind, validatorIds, evidence }, 'equivocation');
    this.#options.onProven(registerId, evidence);
    return true;
  }

  #isProof(voters: Voters & { readonly quorumMin: number }, evidence: PeerEvidence): boolean {
    const { verifier } = this.#options;
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
}

function isConflict(kind: 'duplicate-proposal' | 'duplicate-vote', a: Message, b: Message): boolean {
  const isOfKind = kind === 'duplicate-proposal' ? a.kind === 'proposal' : a.kind !== 'proposal';
  const isOnePlace =
    a.kind === b.kind && a.height === b.height && a.round === b.round && a.validatorId === b.validatorId;
  return isOfKind && isOnePlace && !agrees(a, b);
}

function certified(certificate: { docketHash: string; merkleRoot: string; logRoot: string }): string {
  return identity({ ...certificate, hash: certificate.docketHash });
}

function heightOf(evidence: PeerEvidence): number {
  return evidence.first.height;
}

function nameOf(evidence: PeerEvidence): string {
  if (evidence.kind === 'conflicting-certificate') return `${evidence.kind}/${evidence.first.height}`;
  const { kind, height, round, validatorId } = evidence.first;
  return `${kind}/${height}/${round}/${validatorId}`;
}

/** Of two certificates, who signed both: in one round twice, or in two rounds for two dockets. */
function convictedBy(evidence: PeerEvidence): string[] {
  if (evidence.kind !== 'conflicting-certificate') return [evidence.first.validatorId];
  const others = new Set(evidence.second.signatures.map((each) => each.validatorId));
  return evidence.first.signatures.flatMap(({ validatorId }) => (others.has(validatorId) ? validatorId : []));
}
