import { z } from 'zod';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Ledger } from '../../clients/ledger.ts';
import type { InstanceTables } from '../../database/instance-tables.ts';
import { refusal, refusals } from '../../errors.ts';
import { registerIdSchema } from '../../identifiers.ts';
import { beginRebuild, findCursor } from './progress/store.ts';
import type { Projector } from './projector.ts';

export interface ProjectionRouteDeps {
  readonly db: Pick<Database<InstanceTables>, 'read' | 'transact'>;
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly projector: Pick<Projector, 'catchUpRegister'>;
  readonly log: Logger;
}

const projectionSchema = z
  .object({
    registerId: z.string(),
    height: z.int().describe('Dockets of the register.'),
    foldedHeight: z
      .int()
      .describe(
        'Dockets whose steps are in the rows of instances. It may stay behind where dockets have no step.',
      ),
    restoredFromLedgerAt: z
      .string()
      .nullable()
      .describe(
        'When instances that were not started in this database were made from the ledger: it is new, as after a loss, or the register was replicated. Drafts, operations that were not sealed and chunks of files that no step claims are not in a ledger.',
      ),
    isRebuilding: z.boolean().describe('The rows are made again; until then instances are not answered.'),
  })
  .meta({ id: 'InstanceProjection' });

/** Routes for the rows of the instances of a register: how far they are, and making them again from the ledger. */
export function mountProjectionRoutes(app: App, deps: ProjectionRouteDeps): void {
  const route = {
    tag: 'Administration',
    policy: 'RequireSystemAdmin',
    params: z.object({ registerId: registerIdSchema }),
    refusals: refusals('REGISTER_NOT_FOUND', 'REGISTER_UNAVAILABLE'),
  } as const;

  async function present(registerId: string) {
    const register = await deps.ledger.findRegister(registerId);
    if (register === undefined) throw refusal('REGISTER_NOT_FOUND');
    const { next, announced, restoredAt } = await findCursor(deps.db.read, registerId);
    return {
      registerId,
      height: register.height,
      foldedHeight: next.docket,
      restoredFromLedgerAt: restoredAt?.toISOString() ?? null,
      isRebuilding: announced !== undefined,
    };
  }

  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/admin/workflows/:registerId/projection',
    operationId: 'getInstanceProjection',
    summary: 'For which dockets the rows of instances are made',
    rateLimit: 'Api',
    answers: { 200: json('The progress.', projectionSchema) },
    handle: ({ params }) => present(params.registerId),
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/admin/workflows/:registerId/projection/rebuild',
    operationId: 'refreshInstanceProjection',
    summary: 'Delete the rows of the instances of a register and make them again from its sealed steps',
    description: 'No client hears again of steps that were announced before.',
    rateLimit: 'Strict',
    answers: { 202: json('The rows are made again in the background.', projectionSchema) },
    handle: async ({ caller: { subject }, params: { registerId } }) => {
      await present(registerId);
      await deps.db.transact((tx) => beginRebuild(tx, registerId));
      deps.log.warn({ registerId, subject }, 'the rows of the instances of a register are made again');
      // Every replica also looks for rebuilds that are not done.
      deps.projector.catchUpRegister(registerId).catch((error: unknown) => {
        deps.log.warn({ err: error, registerId }, 'sealed steps cannot be read');
      });
      return answer(202, await present(registerId));
    },
  });
}
