import { z } from 'zod';
import { type App, addRoute, json } from '#kit/http/http.ts';
import type { DrainFacts } from '../../chain/draining/drain.ts';
import { modeCommands } from '../../chain/sealing/modes.ts';
import { ofCalls, refusals } from '../../errors.ts';
import type { LocalValidator } from '../reports/local-validator.ts';
import { namedRegister, registerParams } from '../reports/register-path.ts';
import { type ConsensusDeps, presentDrain, presentMember } from './consensus.ts';
import { drainSchema, modeOutcomeSchema, validatorConsensusSchema } from './schemas.ts';

export interface OperatorApiDeps extends ConsensusDeps, Pick<LocalValidator, 'changeModeHere'> {
  readonly drain: {
    readonly facts: DrainFacts;
    begin(): Promise<DrainFacts>;
    end(): Promise<DrainFacts>;
  };
}

const operator = { tag: 'Operator', policy: 'RequireOperator', rateLimit: 'Api' } as const;

/** Refusals of what is written to the log. */
const ofWrites = refusals('VALIDATOR_PAUSED', 'JOURNAL_UNAVAILABLE');

/**
 * The operator API of one validator: consensus status, drain and undrain, starting and stopping a register here. The gateway
 * does not expose it.
 */
export function mountOperatorApi(app: App, deps: OperatorApiDeps): void {
  addRoute(app, {
    ...operator,
    method: 'GET',
    path: '/api/internal/consensus',
    operationId: 'getValidatorConsensus',
    summary: 'What this validator says of itself',
    answers: { 200: json('The validator and its registers.', validatorConsensusSchema) },
    refusals: [],
    handle: () => presentMember(deps),
  });
  addRoute(app, {
    ...operator,
    method: 'POST',
    path: '/api/internal/drain',
    operationId: 'drainValidator',
    summary: 'Take nothing in, propose nothing, vote on; remembered',
    answers: { 200: json('The progress of the drain.', drainSchema) },
    refusals: ofWrites,
    handle: async () => presentDrain(await deps.drain.begin()),
  });
  addRoute(app, {
    ...operator,
    method: 'POST',
    path: '/api/internal/undrain',
    operationId: 'undrainValidator',
    summary: 'Work as before a drain',
    answers: { 200: json('No drain is in progress.', drainSchema) },
    refusals: ofWrites,
    handle: async () => presentDrain(await deps.drain.end()),
  });
  addRoute(app, {
    ...operator,
    method: 'POST',
    path: '/api/internal/validation/:registerId',
    operationId: 'updateRegisterValidation',
    summary: 'Start, stop, pause or resume a register at this validator',
    params: registerParams,
    body: { schema: z.strictObject({ act: z.enum(modeCommands) }), example: { act: 'pause' } },
    resource: namedRegister,
    answers: { 200: json('The mode of the register.', modeOutcomeSchema) },
    refusals: [
      ...ofCalls,
      ...ofWrites,
      ...refusals('REGISTER_NOT_FOUND', 'REGISTER_HALTED', 'VALIDATION_STOPPED'),
    ],
    handle: async ({ resource: registerId, body }) => ({
      registerId,
      ...(await deps.changeModeHere(registerId, body.act)),
    }),
  });
}
