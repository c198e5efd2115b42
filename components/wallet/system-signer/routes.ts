import { z } from 'zod';
import type { App } from '#kit/http/http.ts';
import { destroyValidatorKeys, type SystemKeyDeps } from './keys.ts';
import { VALIDATOR_CLIENT } from './rules.ts';

const validatorId = z.string().regex(VALIDATOR_CLIENT);

export type ValidatorKeyDeps = Pick<SystemKeyDeps, 'db'>;

/** Keys of validators, as far as the operator decides about them. Never reachable through the gateway. */
export function mountValidatorKeyRoutes(app: App, deps: ValidatorKeyDeps): void {
  app.delete(
    '/api/internal/validator-keys/:validatorId',
    {
      config: { policy: 'RequireOperator', rateLimit: 'Api' },
      schema: {
        operationId: 'destroyValidatorKeys',
        tags: ['Operator'],
        summary: 'Destroys the keys of a validator that left for good',
        params: z.object({ validatorId }),
        response: { 200: z.object({ destroyed: z.int().describe('How many keys it had.') }) },
      },
    },
    async ({ params, log }) => {
      const destroyed = await destroyValidatorKeys(deps, params.validatorId);
      log.info({ subject: params.validatorId, count: destroyed }, 'Keys of a validator destroyed');
      return { destroyed };
    },
  );
}
