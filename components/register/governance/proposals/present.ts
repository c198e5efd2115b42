import { z } from 'zod';
import { apiTimestamp, findTimestamp, ticksToMs } from '#core/encoding/timestamp.ts';
import { findMemberAddress } from '#core/ledger/did.ts';
import { eligibleVoters, requiredApprovals } from '#core/ledger/governance/approvals.ts';
import { approvalDigest, operationSchema, type ProposalStatus } from '#core/ledger/governance/operation.ts';
import { type LedgerRules, rosterHash, votersOf } from '#core/ledger/governance/rules.ts';
import { ownerMayBypass } from '#core/ledger/policy.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import { targetOf } from '../rules/project.ts';
import type { Operation, ProposalRow } from '../rules/store.ts';
import type { ballotSchema, historyEntrySchema, proposalSchema, rosterSchema } from './schemas.ts';

/** A ledger timestamp as routes answer it. */
export function presentTime(text: string): string {
  const ticks = findTimestamp(text);
  return ticks === undefined ? text : apiTimestamp(ticksToMs(ticks));
}

/** The roster, its voters and the number of votes that decide. */
export function presentRoster(rules: LedgerRules): ReadonlyDeep<z.output<typeof rosterSchema>> {
  const voters = votersOf(rules);
  const { quorumFormula } = rules.policy.governance;
  const votes = new Set(voters.map((entry) => entry.subject));
  return {
    registerId: rules.registerId,
    members: rules.roster.map((entry) => ({
      did: entry.subject,
      subject: entry.subject,
      walletAddress: findMemberAddress(entry.subject),
      role: entry.role,
      publicKey: entry.publicKey,
      algorithm: entry.algorithm,
      grantedAt: presentTime(entry.grantedAt),
      votes: votes.has(entry.subject),
    })),
    count: rules.roster.length,
    rosterVersion: rules.rosterVersion,
    rosterHash: rosterHash(rules.registerId, rules.roster),
    quorum: {
      formula: quorumFormula,
      voters: voters.length,
      required: requiredApprovals(quorumFormula, voters.length),
      ownerCanBypass: ownerMayBypass(rules.policy, voters.length),
    },
    controlTransactionCount: rules.controlCount,
  };
}

/** One entry of the governance history. */
export function presentOperation(row: Operation): ReadonlyDeep<z.output<typeof historyEntrySchema>> {
  return {
    txId: row.txId,
    docketNumber: row.docketNumber,
    position: row.position,
    operationType: row.operationType,
    ...(row.proposalId !== undefined && { proposalId: row.proposalId }),
    ...(row.proposer !== undefined && { proposerDid: row.proposer }),
    ...(row.target !== undefined && { target: row.target }),
    ...row.detail,
    sealedAt: presentTime(row.sealedAt),
  };
}

const storedProposal = z.looseObject({
  operation: operationSchema,
  rosterHashBefore: z.string(),
  openedAt: z.string(),
  quorumFormula: z.string(),
  eligible: z.int(),
  required: z.int(),
  votes: z.array(
    z.object({
      did: z.string(),
      isApproval: z.boolean(),
      txId: z.string(),
      at: z.string(),
      comment: z.string().optional(),
    }),
  ),
  approvedAt: z.string().optional(),
});

/** Parses a stored proposal. */
export function readProposal(row: ProposalRow) {
  return storedProposal.parse(JSON.parse(row.proposal));
}

/**
 * Status of a proposal. Expiry by time is not written to the ledger, and a proposal made for an older roster can no
 * longer pass; both are derived here.
 */
function statusOf(row: ProposalRow, nowMs: number): ProposalStatus {
  const isOpen = row.status === 'Pending' || row.status === 'Approved';
  const end = findTimestamp(row.expiresAt);
  return isOpen && end !== undefined && ticksToMs(end) <= nowMs ? 'Expired' : row.status;
}

/** A proposal in a list. */
export function presentProposal(
  row: ProposalRow,
  rules: LedgerRules,
  nowMs: number,
): ReadonlyDeep<z.output<typeof proposalSchema>> {
  const proposal = readProposal(row);
  const { operation, votes, required, eligible } = proposal;
  const { approvalSignatures: _approvals, ...unsigned } = operation;
  const received = votes.filter((vote) => vote.isApproval).length;
  return {
    proposalId: row.proposalId,
    registerId: rules.registerId,
    status: statusOf(row, nowMs),
    operationType: operation.operationType,
    proposerDid: operation.proposerDid,
    target: targetOf(operation),
    operation: unsigned,
    votesReceived: received,
    votesRequired: required,
    votesEligible: eligible,
    votes: votes.map((vote) => ({ ...vote, at: presentTime(vote.at) })),
    rosterHashBefore: proposal.rosterHashBefore,
    rosterChanged: proposal.rosterHashBefore !== rosterHash(rules.registerId, rules.roster),
    openedAt: presentTime(proposal.openedAt),
    openedInDocket: row.openedDocket,
    closedInDocket: row.closedDocket ?? null,
    expiresAt: presentTime(row.expiresAt),
    ...(proposal.approvedAt !== undefined && { approvedAt: presentTime(proposal.approvedAt) }),
  };
}

/** One proposal, with the digests that members who have not voted may sign. */
export function presentBallot(
  row: ProposalRow,
  rules: LedgerRules,
  nowMs: number,
): ReadonlyDeep<z.output<typeof ballotSchema>> {
  const { operation, rosterHashBefore, votes } = readProposal(row);
  const voted = new Set(votes.map((vote) => vote.did));
  const open = eligibleVoters(rules, operation).filter((entry) => !voted.has(entry.subject));
  const digest = (approverDid: string, isApproval: boolean) =>
    approvalDigest({ registerId: rules.registerId, approverDid, isApproval, operation, rosterHashBefore });
  const status = statusOf(row, nowMs);
  return {
    ...presentProposal(row, rules, nowMs),
    dataToSign:
      status === 'Pending'
        ? open.map(({ subject }) => ({
            approverDid: subject,
            approve: digest(subject, true),
            reject: digest(subject, false),
          }))
        : [],
  };
}
