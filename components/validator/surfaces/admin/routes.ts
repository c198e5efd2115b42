import { z } from 'zod';
import { findRegisterId } from '#core/ledger/register-id.ts';
import { type App, callerOf, problemSchema } from '#kit/http/http.ts';
import { type ModeCommand, modeCommands } from '../../chain/sealing/modes.ts';
import { collectReports } from '../reports/collect-reports.ts';
import { type Visibility, visibleTo } from '../reports/visibility.ts';
import { changeModeOfSet, type ModeChangeDeps } from './change-mode.ts';
import { presentConsensus } from './consensus.ts';
import { presentStatus } from './status.ts';

export interface AdminDeps extends ModeChangeDeps, Visibility {
  nowMs(): number;
}

const text = z.string();
const count = z.int().min(0);
const memberActedSchema = z.object({
  validatorId: text,
  reachable: z.boolean(),
  status: text.optional(),
  code: text.optional().describe('why it refused'),
});
const actedSchema = z.object({
  registerId: text,
  status: text,
  message: text,
  members: z.array(memberActedSchema),
});
const placeShape = { height: count, round: count, step: text };
const setShape = {
  registerId: text,
  status: z.enum(['Running', 'Paused', 'Stopped', 'Halted', 'WaitingForValidators']),
  ...placeShape,
  proposer: text,
  validatorSetSize: count,
  quorum: count,
  operational: count.describe('members that can be reached and vote'),
  quorumAvailable: z.boolean(),
};
const memberSchema = z.object({
  validatorId: text,
  reachable: z.boolean(),
  status: text.optional(),
  reason: text.optional(),
  role: text.optional(),
  height: count.optional(),
  round: count.optional(),
  step: text.optional(),
  lastDocketNumber: z.int().optional(),
  memPoolSize: count.optional(),
  volumeBehind: z
    .object({ held: count, chain: count, detectedAt: text.nullable() })
    .optional()
    .describe('dockets that the volume of the validator held, and the chain had, when its process started'),
});
const conditionSchema = z.object({
  type: text.describe('Paused or SealingStopped'),
  reason: text.describe('for instance: disk full'),
  message: text,
  since: text.nullable(),
});
const rejectionSchema = z
  .object({
    docketNumber: count,
    docketHash: text,
    validatorAddress: text,
    approved: z.literal(false),
    timestamp: text,
    signature: text,
    reason: text,
    validatorId: text,
    algorithm: text,
    publicKey: text,
  })
  .describe('a vote of the specification: what was judged invalid, by whom, and why');
const equivocationShape = {
  type: z.literal('EquivocationDetected'),
  status: z.literal('True'),
  reason: z.enum(['DuplicateProposal', 'DuplicateVote', 'ConflictingCertificate']),
  message: text,
  since: text,
};
const statusSchema = z.object({
  registers: z.array(
    z.object({
      ...setShape,
      lastDocketNumber: z.int(),
      memPoolSize: count,
      uptime: text,
      docketsBuilt: count,
      transactionsProcessed: count,
      role: text.describe('of the validator that answers'),
      lastCommitAt: text.nullable(),
      members: z.array(memberSchema.extend({ conditions: z.array(z.object(equivocationShape)) })),
      conditions: z.array(z.object({ ...equivocationShape, validatorIds: z.array(text) })),
      rejections: z.array(rejectionSchema),
    }),
  ),
  validators: z.array(
    z.object({
      validatorId: text,
      reachable: z.boolean(),
      version: text.nullable(),
      uptime: text.nullable(),
      lastHeardAt: text.nullable(),
      conditions: z.array(conditionSchema).describe('what keeps it from its work'),
    }),
  ),
});
const numbersShape = {
  rounds: count,
  roundsFailed: count,
  averageRounds: z.number(),
  proposalsMade: count,
  proposalsReceived: count,
  votesCast: count,
  votesNil: count,
  evidenceCount: count,
  consensusSuccessRate: z.number().describe('rounds that ended in a docket, 0 to 1'),
  averageConsensusTime: z.number().describe('milliseconds'),
};
const consensusSchema = z.object({
  ...numbersShape,
  byRegister: z.array(z.object({ ...setShape, ...numbersShape, unreachable: z.array(text) })),
  unreachable: z.array(text).describe('validators that did not answer'),
});

/**
 * `POST /api/admin/validation/{start|stop|pause|resume}/{registerId}`, `GET /api/admin/validation/status` and
 * `GET /api/metrics/consensus`. Each covers all members of the set, whichever validator receives the request.
 */
export function mountAdmin(app: App, deps: AdminDeps): void {
  for (const act of modeCommands) mountModeCommand(app, deps, act);
  app.get(
    '/api/admin/validation/status',
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Api' },
      schema: {
        operationId: 'getValidationStatus',
        summary: 'Validation of every register by every validator',
        tags: ['Administration'],
        response: { 200: statusSchema },
      },
    },
    async () =>
      presentStatus(await collectReports(deps, ''), { self: deps.validatorId, nowMs: deps.nowMs() }),
  );
  app.get(
    '/api/metrics/consensus',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getConsensusMetrics',
        summary: 'What consensus did, over all validators and by register',
        tags: ['Metrics'],
        response: { 200: consensusSchema },
      },
    },
    async (request) => {
      const collected = await collectReports(deps, '');
      const visible = await visibleTo(deps, callerOf(request), collected);
      return presentConsensus(collected, deps.validatorId, (registerId) => visible.has(registerId));
    },
  );
}

function mountModeCommand(app: App, deps: AdminDeps, act: ModeCommand): void {
  app.post(
    `/api/admin/validation/${act}/:registerId`,
    {
      config: { policy: 'RequireSystemAdmin', rateLimit: 'Api' },
      schema: {
        operationId: `${act}Validation`,
        summary: `${act} validation of a register at all its validators, or at one`,
        tags: ['Administration'],
        params: z.object({ registerId: text }),
        querystring: z.object({
          validatorId: text.max(128).optional().describe('one validator; all when absent'),
          force: z.stringbool().default(false).describe('stop although the quorum breaks'),
        }),
        response: { 200: actedSchema, 404: problemSchema, 409: problemSchema, 503: problemSchema },
      },
    },
    async (request) => {
      const registerId = findRegisterId(request.params.registerId) ?? '';
      const { validatorId, force } = request.query;
      const subjectToken = (request.headers.authorization ?? '').replace(/^Bearer /i, '');
      return changeModeOfSet(deps, { registerId, act, validatorId, force, subjectToken });
    },
  );
}
