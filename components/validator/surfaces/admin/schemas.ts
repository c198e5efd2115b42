import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';

const text = z.string();
const count = z.int().min(0);
const time = text.describe('ISO 8601, UTC.');
const setStatus = z.enum(['Running', 'Paused', 'Stopped', 'Halted', 'WaitingForValidators']);

const memberOutcomeSchema = z.object({
  validatorId: text,
  reachable: z.boolean(),
  status: text.optional(),
  code: text.optional().describe('why it refused'),
});

export const modeChangeSchema = z
  .object({
    registerId: text,
    status: z.enum(['Running', 'Stopped', 'Paused']),
    message: text,
    members: z.array(memberOutcomeSchema),
  })
  .meta({ id: 'ValidationModeChange' });

const setShape = {
  registerId: text,
  status: setStatus,
  height: count,
  round: count,
  step: text,
  proposer: text,
  validatorSetSize: count,
  quorum: count,
  operational: count.describe('members that can be reached and vote'),
  quorumAvailable: z.boolean(),
};

const role = z.enum(['proposer', 'voter', 'observer']);

const memberSchema = z.object({
  validatorId: text,
  reachable: z.boolean(),
  status: text.optional(),
  reason: text.optional(),
  role: role.optional(),
  height: count.optional(),
  round: count.optional(),
  step: text.optional(),
  lastDocketNumber: z.int().optional(),
  memPoolSize: count.optional(),
  volumeBehind: z
    .object({ held: count, chain: count, detectedAt: time.nullable() })
    .optional()
    .describe('dockets that the volume of the validator held, and the chain had, when its process started'),
});

const conditionSchema = z.object({
  type: text.describe('Paused or SealingStopped'),
  reason: text.describe('for instance: disk full'),
  message: text,
  since: time.nullable(),
});

const rejectionSchema = z
  .object({
    docketNumber: count,
    docketHash: text,
    validatorAddress: text,
    approved: z.literal(false),
    timestamp: time,
    signature: text,
    reason: text.optional(),
    validatorId: text,
    algorithm: z.enum(ALGORITHMS),
    publicKey: text,
  })
  .describe('a vote of the specification: what was judged invalid, by whom, and why');

const equivocationSchema = z
  .object({
    type: z.literal('EquivocationDetected'),
    status: z.literal('True'),
    reason: z.enum(['DuplicateProposal', 'DuplicateVote', 'ConflictingCertificate']),
    message: text,
    since: time,
  })
  .meta({ id: 'EquivocationCondition' });

export const validationStatusSchema = z.object({
  registers: z.array(
    z.object({
      ...setShape,
      lastDocketNumber: z.int(),
      memPoolSize: count,
      uptime: text.describe('d.hh:mm:ss'),
      docketsBuilt: count,
      transactionsProcessed: count,
      role: role.describe('of the validator that answers'),
      lastCommitAt: time.nullable(),
      members: z.array(memberSchema.extend({ conditions: z.array(equivocationSchema) })),
      conditions: z.array(z.object({ ...equivocationSchema.shape, validatorIds: z.array(text) })),
      rejections: z.array(rejectionSchema),
    }),
  ),
  validators: z.array(
    z.object({
      validatorId: text,
      reachable: z.boolean(),
      version: text.nullable(),
      features: z.array(text).describe('what its rules cover, such as bp-pin-v1'),
      uptime: text.nullable().describe('d.hh:mm:ss'),
      lastHeardAt: time.nullable(),
      conditions: z.array(conditionSchema).describe('what keeps it from its work'),
    }),
  ),
});

const numbersShape = {
  rounds: count,
  roundsFailed: count,
  averageRounds: z.number().describe('rounds until a docket was decided'),
  proposalsMade: count,
  proposalsReceived: count,
  votesCast: count,
  votesNil: count,
  evidenceCount: count,
  consensusSuccessRate: z
    .number()
    .describe('rounds that ended in a docket, 0 to 1; 1 before the first round'),
  averageConsensusTime: z
    .number()
    .describe("milliseconds from the start of a docket's first round to its decision"),
};

const numbersSchema = z.object(numbersShape);

/** Consensus counters of one register or of all, summed from what the members counted since their starts. */
export type ConsensusNumbers = Readonly<z.output<typeof numbersSchema>>;

export const consensusMetricsSchema = z.object({
  ...numbersShape,
  byRegister: z.array(z.object({ ...setShape, ...numbersShape, unreachable: z.array(text) })),
  unreachable: z.array(text).describe('validators that did not answer'),
});
