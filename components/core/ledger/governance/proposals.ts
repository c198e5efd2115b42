import { z } from 'zod';
import type { Violation } from '../../errors/errors.ts';
import { memberDid } from '../did.ts';
import {
  approvalsAmong,
  type CastVote,
  countVotes,
  eligibleVoters,
  isAccepted,
  requiredApprovals,
} from './approvals.ts';
import {
  type Applied,
  type ControlContext,
  type ControlTransaction,
  judgeSigners,
  type ProposalChange,
  type Refused,
  rosterSigners,
} from './control.ts';
import { judgeEvidence } from './evidence.ts';
import { isObserver, judgeObserver, withQuestion } from './observers.ts';
import {
  approvalSchema,
  GOVERNANCE_PAYLOAD_VERSION,
  type Operation,
  type OperationPayload,
} from './operation.ts';
import {
  applyEffect,
  enactOperation,
  isOver,
  judgeOperation,
  judgeProposer,
  operationEnd,
} from './operations.ts';
import { refuse } from './roster.ts';
import { type LedgerRules, type OpenProposal, rosterHash } from './rules.ts';

/** Maximum number of open proposals on one register. */
const MAX_PROPOSALS = 64;

const version = z.literal(GOVERNANCE_PAYLOAD_VERSION);
const proposalId = z.string().regex(/^[0-9a-f]{64}$/);

/** Votes on a proposal: the first signer's own by `decision`, or approvals that others signed. */
export const votePayloadSchema = z
  .strictObject({
    version,
    proposalId,
    decision: z.enum(['approve', 'reject']).optional(),
    comment: z.string().max(500).optional(),
    approvals: z.array(approvalSchema).min(1).max(50).optional(),
  })
  .refine((payload) => payload.decision !== undefined || payload.approvals !== undefined, 'has no vote');
type VotePayload = z.output<typeof votePayloadSchema>;

/** Payload of the enactment of an approved proposal. */
export const enactPayloadSchema = z.strictObject({ version, enactsProposalId: proposalId });
export type EnactPayload = z.output<typeof enactPayloadSchema>;

function changeOf(transaction: ControlTransaction, proposals: readonly ProposalChange[]): Applied['change'] {
  return { txId: transaction.txId, kind: 'proposal', parts: ['proposals'], proposals, setChanges: 0 };
}

/**
 * Opens a proposal. Owner and admins propose. A suspension with evidence may also be proposed by an active validator or
 * the register-control key, which have no vote; observers.ts limits those proposals.
 */
export function openProposal(
  rules: LedgerRules,
  transaction: ControlTransaction,
  payload: OperationPayload,
  context: ControlContext,
): Applied | Refused {
  const { operation } = payload;
  const problem =
    judgeOpener(rules, transaction, payload, context) ??
    judgeOperation(rules, payload, context) ??
    judgeEvidence(rules, operation, context) ??
    judgeOutcome(rules, payload, context);
  if (problem !== undefined) return problem;
  const asked = withQuestion(rules, payload);
  if ('violations' in asked) return asked;
  const isLive = (each: OpenProposal): boolean =>
    each.rosterHashBefore === payload.rosterHashBefore && !isOver(each.expiresAt, context);
  const isFull = rules.proposals.length >= MAX_PROPOSALS;
  const kept = isFull ? rules.proposals.filter(isLive) : rules.proposals;
  if (kept.length >= MAX_PROPOSALS) return refuse('VAL_PERM_018', 'operation', 'Too many proposals are open');
  const signed = rosterSigners(rules, transaction).map(({ subject }) => ({ did: subject, isApproval: true }));
  const cast = { approvals: operation.approvalSignatures ?? [], signed };
  const votes = countVotes(rules, payload, cast, context.verifier);
  const opened = pendingProposal(rules, transaction, payload, context);
  const { proposal } = withVotes(opened, votes, transaction, context);
  return {
    rules: { ...asked, proposals: [...kept, proposal] },
    change: changeOf(transaction, [{ proposal, txId: transaction.txId }]),
  };
}

function pendingProposal(
  rules: LedgerRules,
  { txId }: ControlTransaction,
  { operation, rosterHashBefore, rosterHashAfter }: OperationPayload,
  { timestamp, docketNumber }: ControlContext,
): OpenProposal {
  const { quorumFormula, proposalTtlDays } = rules.policy.governance;
  const eligible = eligibleVoters(rules, operation).length;
  return {
    proposalId: txId,
    operation,
    rosterHashBefore,
    rosterHashAfter,
    status: 'Pending',
    openedAt: timestamp,
    openedInDocket: docketNumber,
    expiresAt: operationEnd(operation, proposalTtlDays),
    quorumFormula,
    eligible,
    required: requiredApprovals(quorumFormula, eligible),
    votes: [],
  };
}

function judgeOpener(
  rules: LedgerRules,
  transaction: ControlTransaction,
  payload: OperationPayload,
  context: ControlContext,
): Refused | undefined {
  const { operation } = payload;
  const isAccusation = operation.operationType === 'suspend-validator' && operation.evidence !== undefined;
  return isAccusation && isObserver(rules, transaction)
    ? judgeObserver(rules, transaction, payload, context)
    : judgeProposer(rules, transaction, operation);
}

/** Judges that the operation of a proposal is possible now; enactment judges it again. */
function judgeOutcome(
  rules: LedgerRules,
  { operation, rosterHashAfter }: OperationPayload,
  context: ControlContext,
): Refused | undefined {
  const effect = applyEffect(rules, operation, context);
  if ('violations' in effect) return effect;
  return rosterHash(rules.registerId, effect.rules.roster) === rosterHashAfter
    ? undefined
    : refuse('VAL_SCHEMA_001', 'rosterHashAfter', 'rosterHashAfter does not follow from the operation');
}

/** The proposal with more votes, and the status that they give it. */
function withVotes(
  proposal: OpenProposal,
  votes: readonly CastVote[],
  { txId }: ControlTransaction,
  { timestamp }: ControlContext,
): { readonly proposal: OpenProposal; readonly isRejected: boolean } {
  const cast = [...proposal.votes, ...votes.map((vote) => ({ ...vote, txId, at: timestamp }))];
  const approvals = approvalsAmong(cast);
  const isApproved = approvals >= proposal.required && isAccepted(proposal.operation, cast);
  const isRejected =
    proposal.eligible - (cast.length - approvals) < proposal.required || isDeclined(proposal.operation, cast);
  return {
    proposal: isApproved
      ? { ...proposal, votes: cast, status: 'Approved', approvedAt: timestamp }
      : { ...proposal, votes: cast },
    isRejected: isRejected && !isApproved,
  };
}

function isDeclined(operation: Operation, votes: readonly CastVote[]): boolean {
  if (operation.operationType !== 'transfer-ownership') return false;
  return votes.some((vote) => vote.did === operation.targetDid && !vote.isApproval);
}

/** Counts votes on an open proposal. The deciding vote approves or rejects it. */
export function voteOnProposal(
  rules: LedgerRules,
  transaction: ControlTransaction,
  payload: VotePayload,
  context: ControlContext,
): Applied | Refused {
  const violations = judgeSigners(rules, transaction);
  if (violations.length > 0) return { violations };
  const open = findOpen(rules, payload.proposalId, context);
  if ('violations' in open) return open;
  if (open.status !== 'Pending') return refuse('VAL_PERM_012', 'proposalId', 'The proposal is approved');
  const { decision, comment } = payload;
  const sender = memberDid(transaction.senderAddress);
  const isSenderOn = rosterSigners(rules, transaction).some(({ subject }) => subject === sender);
  const own =
    decision === undefined || !isSenderOn
      ? []
      : [{ did: sender, isApproval: decision === 'approve', comment }];
  const cast = { approvals: payload.approvals ?? [], signed: own };
  const votes = countVotes(rules, open, cast, context.verifier).filter(
    (vote) => !open.votes.some((earlier) => earlier.did === vote.did),
  );
  if (votes.length === 0) return refuse('VAL_PERM_015', 'approvals');
  const { proposal, isRejected } = withVotes(open, votes, transaction, context);
  const { txId } = transaction;
  const proposals = isRejected
    ? rules.proposals.filter((each) => each !== open)
    : rules.proposals.map((each) => (each === open ? proposal : each));
  const status = isRejected ? 'Rejected' : proposal.status;
  return {
    rules: { ...rules, proposals },
    change: changeOf(transaction, [{ proposal: { ...proposal, status }, txId }]),
  };
}

function findOpen(rules: LedgerRules, id: string, context: ControlContext): OpenProposal | Refused {
  const open = rules.proposals.find((each) => each.proposalId === id);
  if (open === undefined) return refuse('VAL_PERM_012', 'proposalId');
  if (isOver(open.expiresAt, context)) return refuse('VAL_PERM_013', 'proposalId', 'The proposal is expired');
  return open.rosterHashBefore === rosterHash(rules.registerId, rules.roster)
    ? open
    : refuse('VAL_PERM_009', 'proposalId');
}

/** Enacts an approved proposal. Any signer that may send control transactions may do so. */
export function enactProposal(
  rules: LedgerRules,
  transaction: ControlTransaction,
  payload: EnactPayload,
  context: ControlContext,
): Applied | Refused {
  const violations: Violation[] = judgeSigners(rules, transaction);
  if (violations.length > 0) return { violations };
  const open = findOpen(rules, payload.enactsProposalId, context);
  if ('violations' in open) return open;
  if (open.status !== 'Approved') {
    const isShort = approvalsAmong(open.votes) < open.required;
    return refuse(isShort ? 'VAL_PERM_008' : 'VAL_PERM_010', 'enactsProposalId');
  }
  const applied = enactOperation(rules, transaction, open, context);
  if ('violations' in applied) return applied;
  const { txId } = transaction;
  const recorded = { proposal: { ...open, status: 'Recorded' as const }, txId };
  return {
    rules: { ...applied.rules, proposals: applied.rules.proposals.filter((each) => each !== open) },
    change: {
      ...applied.change,
      parts: [...applied.change.parts, 'proposals'],
      proposals: [recorded],
    },
  };
}
