import type { Verifier } from '#core/crypto/verify.ts';
import { isAppError } from '#core/errors/errors.ts';
import { activeMembers, isSameKey, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { failure } from '../../errors.ts';
import { evidenceId, isProof, type ProvenEvidence } from '../../network/evidence/evidence.ts';
import type { EvidenceClient } from './clients.ts';
import type { HeldEvidence } from './wire.ts';

export interface CollectDeps {
  readonly validatorId: string;
  readonly verifier: Verifier;
  /** The evidence that this validator holds for a register. */
  evidence(registerId: string): readonly ProvenEvidence[];
  /** The rules of a register, from here or from the register service; undefined for an unknown register. */
  findRules(registerId: string): Promise<LedgerRules | undefined>;
  readonly peerClients: EvidenceClient;
}

/** One piece of evidence and the members that hold it. */
export interface CollectedEvidence {
  readonly held: HeldEvidence;
  readonly id: string;
  /** Sorted. */
  readonly heldBy: readonly string[];
  readonly firstSeenAtMs: number;
}

export interface EvidenceCollection {
  readonly rules: LedgerRules;
  /** By height. */
  readonly evidence: readonly CollectedEvidence[];
  /** Members that did not answer, sorted. */
  readonly unreachable: readonly string[];
}

/**
 * Merges the evidence that the members of a register hold, without duplicates. Evidence from another member counts only when
 * its signatures verify with keys that the register knows, so that no claim convicts a member without proof.
 * @throws AppError not_found REGISTER_NOT_FOUND
 */
export async function collectEvidence(deps: CollectDeps, registerId: string): Promise<EvidenceCollection> {
  const rules = await deps.findRules(registerId);
  if (rules === undefined) {
    throw failure('REGISTER_NOT_FOUND');
  }
  const members = activeMembers(rules).map(({ validatorId }) => validatorId);
  const others = members.filter((validatorId) => validatorId !== deps.validatorId);
  const answers = await Promise.all(others.map((validatorId) => ask(deps, validatorId, registerId)));
  const own = deps.evidence(registerId);
  const found = new Map<string, CollectedEvidence>();
  for (const each of own) add(found, { id: each.id, held: each, by: deps.validatorId });
  for (const [index, validatorId] of others.entries()) {
    for (const held of answers[index] ?? []) {
      const id = evidenceId(registerId, held.evidence);
      if (found.has(id) || isVerified(deps, rules, held)) add(found, { id, held, by: validatorId });
    }
  }
  return {
    rules,
    evidence: [...found.values()].toSorted((a, b) => heightOf(a) - heightOf(b) || (a.id < b.id ? -1 : 1)),
    unreachable: others.filter((_, index) => answers[index] === undefined),
  };
}

function heightOf({ held }: CollectedEvidence): number {
  return held.evidence.first.height;
}

/** Undefined when the member is unreachable or its answer is malformed. */
async function ask(
  { peerClients }: CollectDeps,
  validatorId: string,
  registerId: string,
): Promise<readonly HeldEvidence[] | undefined> {
  try {
    return await peerClients.evidence(validatorId, registerId);
  } catch (error) {
    if (isAppError(error)) return undefined;
    throw error;
  }
}

function add(
  found: Map<string, CollectedEvidence>,
  { id, held, by }: { readonly id: string; readonly held: HeldEvidence; readonly by: string },
): void {
  const earlier = found.get(id);
  const heldBy = [...new Set([...(earlier?.heldBy ?? []), by])].toSorted();
  const firstSeenAtMs = Math.min(earlier?.firstSeenAtMs ?? held.seenAtMs, held.seenAtMs);
  found.set(id, { id, held: earlier?.held ?? held, heldBy, firstSeenAtMs });
}

/** Whether the evidence proves a fault of validators of this register, by their keys. */
function isVerified({ verifier }: CollectDeps, rules: LedgerRules, held: HeldEvidence): boolean {
  const { evidence, signers, networkId, validatorSetHash: membersHash } = held;
  const isKnown = signers.every((signer) =>
    rules.validators.some((each) => each.validatorId === signer.validatorId && isSameKey(each, signer)),
  );
  if (!isKnown) return false;
  const { registerId } = rules;
  try {
    return isProof(
      { registerId, networkId, members: signers, membersHash, quorumMin: 1 },
      evidence,
      verifier,
    );
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}
