import { z } from 'zod';
import { type App, addRoute, json } from '#kit/http/http.ts';
import { destroyValidatorKeys, type SystemKeyDeps } from './keys.ts';
import { VALIDATOR_CLIENT } from './rules.ts';

const validatorId = z.string().regex(VALIDATOR_CLIENT);

export type ValidatorKeyDeps = Pick<SystemKeyDeps, 'db'>;

/** Routes by which the operator manages keys of validators. The gateway does not route to them. */
export function mountValidatorKeyRoutes(app: App, deps: ValidatorKeyDeps): void {
  addRoute(app, {
    method: 'DELETE',
    path: '/api/internal/validator-keys/:validatorId',
    operationId: 'destroyValidatorKeys',
    tag: 'Operator',
    summary: 'Destroys the keys of a permanently removed validator',
    policy: 'RequireOperator',
    rateLimit: 'Api',
    params: z.object({ validatorId }),
    answers: {
      200: json('Done.', z.object({ destroyed: z.int().describe('Number of destroyed keys.') })),
    },
    refusals: [],
    handle: async ({ params, request: { log } }) => {
      const destroyed = await destroyValidatorKeys(deps, params.validatorId);
      log.info({ subject: params.validatorId, count: destroyed }, 'the keys of a validator were destroyed');
      return { destroyed };
    },
  });
}
