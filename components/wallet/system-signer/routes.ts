import { z } from 'zod';
import type { App } from '#kit/http/http.ts';
import { destroyValidatorKeys, type SystemKeyDeps } from './keys.ts';
import { VALIDATOR_CLIENT } from './rules.ts';

const validatorId = z.string().regex(VALIDATOR_CLIENT);

export type ValidatorKeyDeps = Pick<SystemKeyDeps, 'db'>;

/** Routes by which the operator manages keys of validators. The gateway does not route to them. */
export function mountValidatorKeyRoutes(app: App, deps: ValidatorKeyDeps): void {
  app.delete(
    '/api/internal/validator-keys/:validatorId',
    {
      config: { policy: 'RequireOperator', rateLimit: 'Api' },
      schema: {
        operationId: 'destroyValidatorKeys',
        tags: ['Operator'],
        summary: 'Destroys the keys of a permanently removed validator',
        params: z.object({ validatorId }),
        response: { 200: z.object({ destroyed: z.int().describe('Number of destroyed keys.') }) },
      },
    },
    async ({ params, log }) => {
      const destroyed = await destroyValidatorKeys(deps, params.validatorId);
      log.info({ subject: params.validatorId, count: destroyed }, 'the keys of a validator were destroyed');
      return { destroyed };
    },
  );
}
