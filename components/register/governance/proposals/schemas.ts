import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { RULES_PARTS } from '#core/ledger/governance/control.ts';
import { OPERATION_TYPES, operationSchema, PROPOSAL_STATUSES } from '#core/ledger/governance/operation.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import { QUORUM_FORMULAS } from '#core/ledger/policy.ts';
import { operationEvents } from '../../database/schema.ts';
import { submittedFields, voteFields } from '../control/schemas.ts';

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');
const memberDid = text.describe('did:platform:w: with the wallet address of the key.');

// Unnamed: openapi-python-client makes no model of a named union whose members have objects of their own.
const governanceOperation = operationSchema;

export const rosterSchema = z
  .object({
    registerId: text,
    members: z.array(
      z.object({
        did: memberDid,
        subject: memberDid.describe('The same as did.'),
        walletAddress: text.optional(),
        role: z.enum(ROSTER_ROLES),
        publicKey: text.describe('Base64.'),
        algorithm: z.enum(ALGORITHMS),
        grantedAt: instant,
        votes: z.boolean().describe('Whether the member votes on operations.'),
      }),
    ),
    count: z.int(),
    rosterVersion: z.int(),
    rosterHash: text,
    quorum: z.object({
      formula: z.enum(QUORUM_FORMULAS),
      voters: z.int(),
      required: z.int(),
      ownerCanBypass: z.boolean(),
    }),
    controlTransactionCount: z.int().describe('Governance transactions since genesis.'),
  })
  .meta({ id: 'GovernanceRoster' });

/** One entry of the governance history. */
export const historyEntrySchema = z
  .object({
    txId: text.describe('Empty for an ejection, which has no transaction.'),
    docketNumber: z.int(),
    position: z.int().describe('Position in the docket; negative for ejections, which precede it.'),
    operationType: text.describe('The type of the operation, else the kind of the control transaction.'),
    proposalId: text.optional(),
    proposerDid: memberDid.optional(),
    target: text.optional().describe('DID of a member, or id of a validator.'),
    event: z.enum(operationEvents),
    actionId: text.optional(),
    senderAddress: text.optional(),
    parts: z.array(z.enum(RULES_PARTS)).optional().describe('The parts of the rules that changed.'),
    operation: governanceOperation.optional(),
    proposalStatus: z.enum(PROPOSAL_STATUSES).optional(),
    sealedAt: instant,
  })
  .meta({ id: 'GovernanceHistoryEntry' });

/** A proposal in a list. */
export const proposalSchema = z
  .object({
    proposalId: text,
    registerId: text,
    status: z.enum(PROPOSAL_STATUSES),
    operationType: z.enum(OPERATION_TYPES),
    proposerDid: memberDid,
    target: text.optional().describe('DID of a member, or id of a validator.'),
    operation: governanceOperation,
    votesReceived: z.int().describe('Approvals.'),
    votesRequired: z.int(),
    votesEligible: z.int(),
    votes: z.array(
      z.object({
        did: memberDid,
        isApproval: z.boolean(),
        txId: text.describe('The transaction that carried the vote.'),
        at: instant,
        comment: text.optional(),
      }),
    ),
    rosterHashBefore: text,
    rosterChanged: z.boolean().describe('Whether the roster changed since, so that it can no longer pass.'),
    openedAt: instant,
    openedInDocket: z.int(),
    closedInDocket: z.int().nullable(),
    expiresAt: instant,
    approvedAt: instant.optional(),
  })
  .meta({ id: 'GovernanceProposal' });

/** One proposal, with the digests that members who have not voted may sign. */
export const ballotSchema = proposalSchema
  .extend({
    dataToSign: z
      .array(
        z.object({
          approverDid: memberDid,
          approve: text.describe('SHA-256 to sign for an approval, 64 lower-case hex digits.'),
          reject: text.describe('SHA-256 to sign for a rejection, 64 lower-case hex digits.'),
        }),
      )
      .describe('Empty unless the proposal is pending.'),
  })
  .meta({ id: 'GovernanceBallot' });

/** A submitted operation; of one that was signed elsewhere, only its id is known. */
export const submittedOperationSchema = z
  .object({
    ...submittedFields,
    operationType: z.enum(OPERATION_TYPES).optional(),
    ...z.object(voteFields).partial().shape,
  })
  .meta({ id: 'SubmittedOperation' });

const ballotFields = {
  proposalId: text,
  operationType: z.enum(OPERATION_TYPES),
  votesReceived: z.int().describe('Approvals before this transaction.'),
  votesRequired: z.int(),
};

/** A submitted vote; of one that was signed elsewhere, only its id is known. */
export const submittedVoteSchema = z
  .object({ ...submittedFields, ...z.object(ballotFields).partial().shape })
  .meta({ id: 'SubmittedVote' });

export const submittedEnactmentSchema = z.object({ ...submittedFields, ...ballotFields });
