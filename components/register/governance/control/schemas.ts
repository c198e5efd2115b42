import { z } from 'zod';

const text = z.string();

/** Members of every answer about a submitted control transaction. */
export const submittedFields = {
  txId: text,
  registerId: text,
  status: z.literal('submitted'),
};

/** Members about the votes on a submitted operation. */
export const voteFields = {
  requiresGovernanceVote: z.boolean().describe('Whether it is a proposal on which others vote.'),
  proposalId: text.optional(),
  votesReceived: z.int(),
  votesRequired: z.int(),
};
