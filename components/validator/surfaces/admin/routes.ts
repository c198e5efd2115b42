import { z } from 'zod';
import { type App, addRoute, bearerOf, json } from '#kit/http/http.ts';
import { type ModeCommand, modeCommands } from '../../chain/sealing/modes.ts';
import { ofCalls, refusals } from '../../errors.ts';
import { collectReports } from '../reports/collect-reports.ts';
import { namedRegister, registerParams } from '../reports/register-path.ts';
import { type VisibilityOfMany, visibleTo } from '../reports/visibility.ts';
import { changeModeOfSet, type ModeChangeDeps } from './change-mode.ts';
import { presentConsensus } from './consensus.ts';
import { consensusMetricsSchema, modeChangeSchema, validationStatusSchema } from './schemas.ts';
import { presentStatus } from './status.ts';

export interface AdminDeps extends ModeChangeDeps, VisibilityOfMany {
  nowMs(): number;
}

/**
 * `POST /api/admin/validation/{start|stop|pause|resume}/{registerId}`, `GET /api/admin/validation/status` and
 * `GET /api/metrics/consensus`. Each covers all members of the set, whichever validator receives the request.
 */
export function mountAdmin(app: App, deps: AdminDeps): void {
  for (const act of modeCommands) mountModeCommand(app, deps, act);
  addRoute(app, {
    method: 'GET',
    path: '/api/admin/validation/status',
    operationId: 'getValidationStatus',
    tag: 'Administration',
    summary: 'Validation of every register by every validator',
    policy: 'RequireSystemAdmin',
    rateLimit: 'Api',
    answers: { 200: json('The registers and the validators.', validationStatusSchema) },
    refusals: [],
    handle: async () =>
      presentStatus(await collectReports(deps, ''), { self: deps.validatorId, nowMs: deps.nowMs() }),
  });
  addRoute(app, {
    method: 'GET',
    path: '/api/metrics/consensus',
    operationId: 'getConsensusMetrics',
    tag: 'Metrics',
    summary: 'What consensus did, over all validators and by register',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    answers: { 200: json('Counters since the starts of the validators.', consensusMetricsSchema) },
    refusals: ofCalls,
    handle: async ({ caller }) => {
      const collected = await collectReports(deps, '');
      const visible = await visibleTo(deps, caller, collected);
      return presentConsensus(collected, deps.validatorId, (registerId) => visible.has(registerId));
    },
  });
}

function mountModeCommand(app: App, deps: AdminDeps, act: ModeCommand): void {
  addRoute(app, {
    method: 'POST',
    path: `/api/admin/validation/${act}/:registerId`,
    operationId: `${act}Validation`,
    tag: 'Administration',
    summary: `${act} validation of a register at all its validators, or at one`,
    policy: 'RequireSystemAdmin',
    rateLimit: 'Api',
    params: registerParams,
    query: z.object({
      validatorId: z.string().max(128).optional().describe('one validator; all when absent'),
      force: z.stringbool().default(false).describe('stop although the quorum breaks'),
    }),
    resource: namedRegister,
    answers: { 200: json('The mode, and what each validator answered.', modeChangeSchema) },
    refusals: [
      ...ofCalls,
      ...refusals('REGISTER_NOT_FOUND', 'VALIDATOR_NOT_FOUND', 'QUORUM_WOULD_BREAK', 'REGISTER_HALTED'),
      ...refusals('VALIDATION_STOPPED', 'VALIDATOR_UNAVAILABLE'),
    ],
    handle: ({ resource: registerId, query: { validatorId, force }, request }) =>
      changeModeOfSet(deps, { registerId, act, validatorId, force, subjectToken: bearerOf(request) }),
  });
}
