import type { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { governanceDraft } from '#core/ledger/governance/build.ts';
import { type Approval, GOVERNANCE_PAYLOAD_VERSION } from '#core/ledger/governance/operation.ts';
import type { OpenProposal } from '#core/ledger/governance/rules.ts';
import { refusal } from '../../errors.ts';
import type { Subject } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { assertAccepted } from '../control/answer.ts';
import { resolveSigner } from '../control/roster-authorisation.ts';
import { type ControlDeps, submitControl } from '../control/submit.ts';
import { loadRules, type RulesDeps } from '../rules/load.ts';
import type { submittedEnactmentSchema } from './schemas.ts';
import { findProposal } from './store.ts';

interface VoteDeps extends ControlDeps, RulesDeps {}

/** A proposal of a register, and the caller who votes on it. */
interface BallotBox {
  readonly register: Register;
  readonly subject: Subject;
  readonly proposalId: string;
}

interface Ballot {
  readonly decision?: 'approve' | 'reject' | undefined;
  readonly approverDid?: string | undefined;
  readonly comment?: string | undefined;
  readonly approvals?: readonly Approval[] | undefined;
}

async function loadBallot(deps: VoteDeps, box: BallotBox, did: string | undefined) {
  const { register, subject, proposalId } = box;
  const rules = await loadRules(deps, register);
  const proposal = rules.proposals.find((one) => one.proposalId === proposalId);
  if (proposal === undefined) {
    const known = await findProposal(deps.database.read, register.registerNo, proposalId);
    throw refusal(known === undefined ? 'PROPOSAL_NOT_FOUND' : 'PROPOSAL_CLOSED');
  }
  const member = await resolveSigner(deps.wallets, subject, rules, did);
  return { proposal, member };
}

type SubmittedVote = z.output<typeof submittedEnactmentSchema>;

/** Presents a vote or an enactment that a validator accepted. */
function presentSubmitted(box: BallotBox, proposal: OpenProposal, txId: string): SubmittedVote {
  return {
    txId,
    registerId: box.register.registerId,
    proposalId: box.proposalId,
    operationType: proposal.operation.operationType,
    status: 'submitted',
    votesReceived: proposal.votes.filter((one) => one.isApproval).length,
    votesRequired: proposal.required,
  };
}

/** Votes on an open proposal with the caller's wallet, or submits votes that others signed. */
export async function vote(deps: VoteDeps, box: BallotBox, ballot: Ballot): Promise<SubmittedVote> {
  const { decision, comment, approvals, approverDid } = ballot;
  if (decision === undefined && approvals === undefined)
    throw new AppError('invalid', 'INVALID_REQUEST', 'Give a decision, or approvals that others signed.');
  const { proposal, member } = await loadBallot(deps, box, approverDid);
  const payload = {
    version: GOVERNANCE_PAYLOAD_VERSION,
    proposalId: box.proposalId,
    decision,
    comment,
    approvals,
  };
  const draft = governanceDraft('control.governance.approve', payload);
  const { txId, answer } = await submitControl(deps, box.register, draft, member.signer);
  assertAccepted(answer);
  return presentSubmitted(box, proposal, txId);
}

/** Enacts an approved proposal with the caller's wallet. The register service does the same in the background. */
export async function enact(deps: VoteDeps, box: BallotBox): Promise<SubmittedVote> {
  const { proposal, member } = await loadBallot(deps, box, undefined);
  const payload = { version: GOVERNANCE_PAYLOAD_VERSION, enactsProposalId: box.proposalId };
  const draft = governanceDraft('control.governance.enact', payload);
  const { txId, answer } = await submitControl(deps, box.register, draft, member.signer);
  assertAccepted(answer);
  return presentSubmitted(box, proposal, txId);
}
