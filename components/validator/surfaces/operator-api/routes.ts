import { z } from 'zod';
import { findRegisterId } from '#core/ledger/register-id.ts';
import { type App, problemSchema } from '#kit/http/http.ts';
import type { DrainFacts } from '../../chain/draining/drain.ts';
import { modeCommands } from '../../chain/sealing/modes.ts';
import { failure } from '../../errors.ts';
import type { LocalValidator } from '../reports/local-validator.ts';
import { type ConsensusDeps, presentDrain, presentMember } from './consensus.ts';

export interface OperatorApiDeps extends ConsensusDeps, Pick<LocalValidator, 'changeModeHere'> {
  readonly drain: {
    readonly facts: DrainFacts;
    begin(): Promise<DrainFacts>;
    end(): Promise<DrainFacts>;
  };
}

const text = z.string();
const count = z.int().min(0);
const time = text.nullable();
const tags = ['Operator'];
const config = { policy: 'RequireOperator', rateLimit: 'Api' } as const;

const drainSchema = z.object({
  state: z.enum(['None', 'Draining', 'Drained']),
  since: time,
  waiting: count.describe('transactions from before the drain that are neither sealed nor dropped'),
  inFlight: count.describe('dockets proposed here and undecided, or decided and not stored'),
  alone: z.array(text).describe('registers whose only member this is: what waits there stays in its log'),
});
const evidenceSchema = z.object({
  kind: z.enum(['duplicate-proposal', 'duplicate-vote', 'conflicting-certificate']),
  validatorIds: z.array(text),
  height: count,
  seenAt: time,
});
const registerSchema = z.object({
  registerId: text,
  status: z.enum(['Running', 'Paused', 'Stopped', 'Halted', 'WaitingForValidators']),
  reason: text,
  membership: z.enum(['Active', 'Pending', 'Suspended', 'Removed', 'None']),
  isMember: z.boolean(),
  height: count.describe('number of the docket that is being decided'),
  storedHeight: count.describe('dockets that the register service is known to hold'),
  round: count,
  step: text,
  role: z.enum(['proposer', 'voter', 'observer']),
  proposer: text,
  isProposer: z.boolean(),
  quorum: count,
  members: z.array(text),
  operational: count.describe('members heard of within the time that the policy allows'),
  behind: count.describe('decided dockets that others have and this member has not'),
  mempool: z.object({ pending: count, bytes: count }),
  unstored: count,
  lastCommitAt: time,
  headHash: text,
  roots: z.array(z.object({ height: count, root: text })).describe('log roots of the latest heights'),
  evidence: z.array(evidenceSchema),
});
const memberSchema = z.object({
  validatorId: text,
  did: text,
  walletAddress: text,
  publicKey: text,
  algorithm: text,
  version: text,
  protocolVersion: count,
  startedAt: time,
  endpoint: text,
  drain: drainSchema,
  conditions: z.array(z.object({ type: text, reason: text, message: text, since: time })),
  mempool: z.object({ bytes: count, maxBytes: count }),
  heard: z.array(z.object({ validatorId: text, heardAt: time })),
  registers: z.array(registerSchema),
});

/**
 * The operator API of one validator: consensus status, drain and undrain, starting and stopping a register here. The gateway
 * does not expose it.
 */
export function mountOperatorApi(app: App, deps: OperatorApiDeps): void {
  app.get(
    '/api/internal/consensus',
    {
      config,
      schema: {
        operationId: 'getValidatorConsensus',
        summary: 'What this validator says of itself',
        tags,
        response: { 200: memberSchema },
      },
    },
    async () => presentMember(deps) as z.output<typeof memberSchema>,
  );
  app.post(
    '/api/internal/drain',
    {
      config,
      schema: {
        operationId: 'drainValidator',
        summary: 'Take nothing in, propose nothing, vote on; remembered',
        tags,
        response: { 200: drainSchema, 503: problemSchema },
      },
    },
    async () => presentDrain(await deps.drain.begin()),
  );
  app.post(
    '/api/internal/undrain',
    {
      config,
      schema: {
        operationId: 'undrainValidator',
        summary: 'Work as before a drain',
        tags,
        response: { 200: drainSchema, 503: problemSchema },
      },
    },
    async () => presentDrain(await deps.drain.end()),
  );
  app.post(
    '/api/internal/validation/:registerId',
    {
      config,
      schema: {
        operationId: 'updateRegisterValidation',
        summary: 'Start, stop, pause or resume a register at this validator',
        tags,
        params: z.object({ registerId: text }),
        body: z.strictObject({ act: z.enum(modeCommands) }),
        response: {
          200: z.object({ registerId: text, status: text, changed: z.boolean() }),
          404: problemSchema,
          409: problemSchema,
        },
      },
    },
    async (request) => {
      const registerId = findRegisterId(request.params.registerId);
      if (registerId === undefined) throw failure('REGISTER_NOT_FOUND');
      return { registerId, ...(await deps.changeModeHere(registerId, request.body.act)) };
    },
  );
}
