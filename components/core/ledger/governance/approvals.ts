import { parsePublicKey } from '../../crypto/public-key.ts';
import type { Verifier } from '../../crypto/verify.ts';
import { decodeBase64Any } from '../../encoding/base64.ts';
import { isAppError } from '../../errors/errors.ts';
import { ownerMayBypass } from '../policy.ts';
import { type Approval, approvalBytes, type Operation } from './operation.ts';
import {
  findRosterEntry,
  type LedgerRules,
  type QuorumFormula,
  type RosterEntry,
  votersOf,
} from './rules.ts';

/** Votes that a formula needs of `voters`; at least one, also without voters. */
export function requiredApprovals(formula: QuorumFormula, voters: number): number {
  const most = Math.max(1, voters);
  switch (formula) {
    case 'strict-majority':
      return Math.floor(most / 2) + 1;
    case 'supermajority':
      return Math.min(most, Math.floor((2 * most) / 3) + 1);
    case 'unanimous':
      return most;
  }
}

/** The members that may vote on an operation: owner and admins, without the target of a removal. */
export function eligibleVoters(rules: LedgerRules, operation: Operation): RosterEntry[] {
  const voters = votersOf(rules);
  if (operation.operationType !== 'remove-member') return voters;
  return voters.filter((entry) => entry.subject !== operation.targetDid);
}

/** Whether one member may decide alone: an owner that may bypass the quorum, for operations on members only. */
export function mayBypass(rules: LedgerRules, operation: Operation): boolean {
  const proposer = findRosterEntry(rules, operation.proposerDid);
  const { operationType } = operation;
  const isBypassable =
    operationType === 'add-member' || operationType === 'remove-member' || operationType === 'change-role';
  return proposer?.role === 'Owner' && isBypassable && ownerMayBypass(rules.policy, votersOf(rules).length);
}

/** Whether an approval is signed with the key that the roster holds for its approver. */
export function verifyApproval(
  rules: LedgerRules,
  subject: { readonly operation: Operation; readonly rosterHashBefore: string },
  approval: Approval,
  verifier: Verifier,
): boolean {
  const entry = findRosterEntry(rules, approval.approverDid);
  if (entry === undefined) return false;
  const { approverDid, isApproval } = approval;
  try {
    return verifier.verifyPreimage({
      algorithm: entry.algorithm,
      publicKey: parsePublicKey(entry.algorithm, entry.publicKey),
      preimage: approvalBytes({ ...subject, registerId: rules.registerId, approverDid, isApproval }),
      signature: decodeBase64Any(approval.signature),
    });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

export interface CastVote {
  readonly did: string;
  readonly isApproval: boolean;
  readonly comment?: string | undefined;
}

/**
 * The votes that count: the first valid vote of each eligible voter. A forged or repeated approval is skipped and does
 * not affect the others.
 * @param signed members whose signature of the transaction is their approval; an embedded vote of theirs takes
 * precedence
 */
export function countVotes(
  rules: LedgerRules,
  subject: { readonly operation: Operation; readonly rosterHashBefore: string },
  cast: { readonly approvals: readonly Approval[]; readonly signed: readonly CastVote[] },
  verifier: Verifier,
): CastVote[] {
  const eligible = new Set(eligibleVoters(rules, subject.operation).map((entry) => entry.subject));
  const votes = new Map<string, CastVote>();
  for (const approval of cast.approvals) {
    const { approverDid: did, isApproval, comment } = approval;
    if (!eligible.has(did) || votes.has(did)) continue;
    if (verifyApproval(rules, subject, approval, verifier)) votes.set(did, { did, isApproval, comment });
  }
  for (const vote of cast.signed) {
    if (eligible.has(vote.did) && !votes.has(vote.did)) votes.set(vote.did, vote);
  }
  return [...votes.values()];
}

/** Whether the target of a transfer of ownership has approved it. */
export function isAccepted(operation: Operation, votes: readonly CastVote[]): boolean {
  if (operation.operationType !== 'transfer-ownership') return true;
  return votes.some((vote) => vote.did === operation.targetDid && vote.isApproval);
}

/** Number of approving votes. */
export function approvalsAmong(votes: readonly CastVote[]): number {
  return votes.filter((vote) => vote.isApproval).length;
}
