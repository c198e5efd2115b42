import { AppError } from '../../errors/errors.ts';
import type { ControlContext } from './control.ts';
import { GOVERNANCE_BLUEPRINT } from './control.ts';
import { GOVERNANCE_PAYLOAD_VERSION, type Operation, type OperationPayload } from './operation.ts';
import { applyEffect } from './operations.ts';
import type { EnactPayload } from './proposals.ts';
import { type LedgerRules, type OpenProposal, rosterHash } from './rules.ts';

/** The members of an envelope that make a transaction governance; the sender adds the others. */
export interface GovernanceDraft {
  readonly blueprintId: string;
  readonly actionId: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly payload: unknown;
}

/**
 * Blueprint, action and metadata of a governance transaction (specification document 2, section 2).
 * @param facts further members of the metadata, such as policyVersion
 */
export function governanceDraft(
  actionId: string,
  payload: unknown,
  facts: Readonly<Record<string, string>> = {},
): GovernanceDraft {
  const transactionType = actionId === 'control.crypto.update' ? 'CryptoPolicyUpdate' : 'Control';
  const metadata = { Type: 'Control', transactionType, ...facts };
  return { blueprintId: GOVERNANCE_BLUEPRINT, actionId, metadata, payload };
}

/**
 * Builds the payload of an operation against the present rules: with approvals for one transaction, without for a
 * proposal.
 * @throws AppError unprocessable with the violation when the operation is not possible now
 */
export function buildOperation(
  rules: LedgerRules,
  operation: Operation,
  context: ControlContext,
): OperationPayload {
  const effect = applyEffect(rules, operation, context);
  if ('violations' in effect) {
    const [first] = effect.violations;
    throw new AppError('unprocessable', first?.code ?? 'UNPROCESSABLE', first?.message ?? 'refused', {
      violations: effect.violations,
    });
  }
  return {
    version: GOVERNANCE_PAYLOAD_VERSION,
    operation,
    rosterHashBefore: rosterHash(rules.registerId, rules.roster),
    rosterHashAfter: rosterHash(rules.registerId, effect.rules.roster),
  };
}

/**
 * Builds the enactment of an approved proposal; undefined while it is not approved. The register-control key signs it
 * with the time of the deciding vote, so every service builds the same transaction with the same derived id.
 */
export function buildEnactment(
  proposal: OpenProposal,
): { readonly draft: GovernanceDraft; readonly createdAt: string } | undefined {
  if (proposal.approvedAt === undefined) return undefined;
  const payload: EnactPayload = {
    version: GOVERNANCE_PAYLOAD_VERSION,
    enactsProposalId: proposal.proposalId,
  };
  const draft = governanceDraft('control.governance.enact', payload);
  return { draft, createdAt: proposal.approvedAt };
}
