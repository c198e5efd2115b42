import { type App, addRoute, json } from '#kit/http/http.ts';
import { ofCalls, refusals } from '../../errors.ts';
import { namedRegister, registerParams } from '../reports/register-path.ts';
import { type CollectDeps, collectEvidence } from './collect.ts';
import { presentEvidence } from './present.ts';
import { evidenceSchema } from './schemas.ts';

/** `GET /api/admin/validators/{registerId}/evidence`, for all members of the register. */
export function mountEvidence(app: App, deps: CollectDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/admin/validators/:registerId/evidence',
    operationId: 'listValidatorEvidence',
    tag: 'Administration',
    summary: 'Conflicting signed messages of the validators of a register',
    policy: 'RequireSystemAdmin',
    rateLimit: 'Api',
    params: registerParams,
    resource: namedRegister,
    answers: { 200: json('The evidence that the members hold.', evidenceSchema) },
    refusals: [...ofCalls, ...refusals('REGISTER_NOT_FOUND')],
    handle: async ({ resource: registerId }) => presentEvidence(await collectEvidence(deps, registerId)),
  });
}
