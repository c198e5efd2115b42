import { z } from 'zod';
import { type App, addRoute, answer, json } from '#kit/http/http.ts';
import { gatewayError } from '../errors.ts';
import type { Documents } from './documents.ts';

export interface OpenApiDeps {
  readonly documents: Documents;
}

const parameters = z.object({ document: z.string().regex(/^[a-z-]{1,40}\.json$/) });

const documentSchema = z.looseObject({
  openapi: z.string(),
  paths: z.record(z.string(), z.unknown()),
});

export function mountOpenApiRoutes(app: App, deps: OpenApiDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/openapi/:document',
    operationId: 'getApiDocument',
    tag: 'Reference',
    summary: 'OpenAPI 3.1 of one service ({service}.json) or of all (all.json)',
    policy: 'Anonymous',
    rateLimit: 'none',
    params: parameters,
    answers: { 200: json('The document.', documentSchema) },
    refusals: [],
    handle: async ({ params }) => {
      const name = params.document.slice(0, -'.json'.length);
      const found = name === 'all' ? await deps.documents.merged() : await deps.documents.find(name);
      if (found === undefined) throw gatewayError('NOT_FOUND', 'There is no such document.');
      return answer(200, found, { 'cache-control': 'public, max-age=30' });
    },
  });
}
