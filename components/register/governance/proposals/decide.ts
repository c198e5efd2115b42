import type { Verifier } from '#core/crypto/verify.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import {
  approvalsAmong,
  countVotes,
  eligibleVoters,
  isAccepted,
  mayBypass,
  requiredApprovals,
} from '#core/ledger/governance/approvals.ts';
import { buildOperation, governanceDraft } from '#core/ledger/governance/build.ts';
import type { Operation, OperationPayload, OperationType } from '#core/ledger/governance/operation.ts';
import type { LedgerRules } from '#core/ledger/governance/rules.ts';
import type { Register } from '../../registers/state/store.ts';
import {
  type ControlDeps,
  type ControlSigner,
  type SubmittedControl,
  submitControl,
} from '../control/submit.ts';

export interface DecideDeps extends ControlDeps {
  readonly verifier: Verifier;
}

/** `auto`: enacted at once when the approvals suffice, else proposed. */
type DecideMode = 'auto' | 'direct' | 'proposal';

/** A submitted operation: enacted by its own docket, or opened as a proposal. */
interface Decided extends SubmittedControl {
  /** id of the transaction that opened a proposal; undefined for an enactment */
  readonly proposalId: string | undefined;
  readonly votesReceived: number;
  readonly votesRequired: number;
}

/** The votes on a submitted operation, for answers. */
export function presentVotes({ proposalId, votesReceived, votesRequired }: Decided) {
  return {
    requiresGovernanceVote: proposalId !== undefined,
    ...(proposalId !== undefined && { proposalId }),
    votesReceived,
    votesRequired,
  };
}

/** The action ids of operations that carry their approvals; the names are those of the specification. */
const actions: Readonly<Record<OperationType, string>> = {
  'add-member': 'add-member',
  'remove-member': 'remove-member',
  'transfer-ownership': 'transfer-ownership',
  'change-role': 'change-role',
  'add-validator': 'control.validator.approve',
  'remove-validator': 'control.validator.remove',
  'rotate-validator-key': 'rotate-validator-key',
  'suspend-validator': 'control.validator.suspend',
  'policy-update': 'control.policy.update',
  'crypto-policy-update': 'control.crypto.update',
};

interface Tally {
  readonly received: number;
  readonly required: number;
  readonly isEnough: boolean;
}

/** Counts the proposer's own vote and the given approvals by the rules of the ledger. */
function tally(rules: LedgerRules, payload: OperationPayload, verifier: Verifier): Tally {
  const { operation } = payload;
  const signed = [{ did: operation.proposerDid, isApproval: true }];
  const votes = countVotes(
    rules,
    payload,
    { approvals: operation.approvalSignatures ?? [], signed },
    verifier,
  );
  const voters = eligibleVoters(rules, operation).length;
  const required = requiredApprovals(rules.policy.governance.quorumFormula, voters);
  const received = approvalsAmong(votes);
  const isEnough = (received >= required || mayBypass(rules, operation)) && isAccepted(operation, votes);
  return { received, required, isEnough };
}

/**
 * Submits an operation signed with the proposer's wallet: enacted in one transaction when its approvals suffice, else
 * as a proposal for others to vote on. Refusals that the rules determine happen before anything is signed.
 */
export async function decide(
  deps: DecideDeps,
  at: { readonly register: Register; readonly rules: LedgerRules; readonly proposer: ControlSigner },
  operation: Operation,
  mode: DecideMode,
): Promise<Decided> {
  const { register, rules, proposer } = at;
  const timestamp = formatLedgerTimestamp(deps.clock.nowMicros());
  const context = { docketNumber: register.height, timestamp, verifier: deps.verifier };
  const payload = buildOperation(rules, operation, context);
  const { received, required, isEnough } = tally(rules, payload, deps.verifier);
  const isDirect = mode === 'direct' || (mode === 'auto' && isEnough);
  const actionId = isDirect ? actions[operation.operationType] : 'control.governance.propose';
  const draft = governanceDraft(actionId, payload, factsOf(operation));
  const submitted = await submitControl(deps, register, draft, proposer);
  return {
    ...submitted,
    proposalId: isDirect ? undefined : submitted.txId,
    votesReceived: received,
    votesRequired: required,
  };
}

function factsOf(operation: Operation): Readonly<Record<string, string>> {
  switch (operation.operationType) {
    case 'policy-update':
      return { policyVersion: String(operation.policy['version']) };
    case 'crypto-policy-update':
      return { policyVersion: String(operation.cryptoPolicy.version) };
    default:
      return {};
  }
}
