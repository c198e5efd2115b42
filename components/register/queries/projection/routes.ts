import { z } from 'zod';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import type { Logger } from '#kit/log/log.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusals } from '../../errors.ts';
import { anyRegister } from '../../registers/state/access.ts';
import type { Projector } from './jobs.ts';
import { projectedHeight } from './progress/store.ts';
import { requestRebuild } from './rebuild/store.ts';

export interface ProjectionRouteDeps {
  readonly database: Pick<Database<RegisterSchema>, 'read' | 'transact'>;
  readonly log: Logger;
  readonly projector: Pick<Projector, 'wake' | 'isFailing'>;
}

const projectionSchema = z
  .object({
    registerId: z.string(),
    height: z.int().describe('Dockets of the register.'),
    projectedHeight: z.int().describe('Dockets whose index rows are written.'),
    isFailing: z.boolean().describe('The last attempt of the process that answers failed; it is repeated.'),
  })
  .meta({ id: 'RegisterProjection' });

/** Routes for the index rows of a register: how far they are, and writing them anew. */
export function mountProjection(app: App, deps: ProjectionRouteDeps): void {
  const route = {
    tag: 'Administration',
    policy: 'RequireSystemAdmin',
    params: z.object({ registerId: z.string() }),
    resource: anyRegister(() => deps.database.read),
    refusals: refusals('REGISTER_NOT_FOUND'),
  } as const;

  async function present({ registerNo, registerId, height }: Awaited<ReturnType<typeof route.resource>>) {
    const projected = await projectedHeight(deps.database.read, registerNo);
    return {
      registerId,
      height,
      projectedHeight: projected,
      isFailing: deps.projector.isFailing(registerNo),
    };
  }

  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/admin/registers/:registerId/projection',
    operationId: 'getRegisterProjection',
    summary: 'For which dockets the index rows of queries are written',
    rateLimit: 'Api',
    answers: { 200: json('The progress.', projectionSchema) },
    handle: ({ resource }) => present(resource),
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/admin/registers/:registerId/projection/rebuild',
    operationId: 'refreshRegisterProjection',
    summary: 'Delete the index rows of queries and write them anew from the stored dockets',
    rateLimit: 'Strict',
    answers: { 202: json('The rows are written anew in the background.', projectionSchema) },
    handle: async ({ caller: { subject }, resource }) => {
      const { registerId, registerNo } = resource;
      await deps.database.transact((tx) => requestRebuild(tx, registerNo));
      deps.log.warn({ registerId, subject }, 'the index rows of a register are written anew');
      deps.projector.wake(registerNo);
      return answer(202, await present(resource));
    },
  });
}
