import { z } from 'zod';
import { type App, jsonAnswer } from '#kit/http/http.ts';
import { gatewayError } from '../errors.ts';
import type { Documents } from './documents.ts';

export interface OpenApiDeps {
  readonly documents: Documents;
}

const parameters = z.object({ document: z.string().regex(/^[a-z-]{1,40}\.json$/) });

export function mountOpenApiRoutes(app: App, deps: OpenApiDeps): void {
  app.get(
    '/openapi/:document',
    {
      config: { policy: 'Anonymous' },
      schema: {
        operationId: 'getApiDocument',
        tags: ['Reference'],
        summary: 'OpenAPI 3.1 of one service ({service}.json) or of all (all.json)',
        params: parameters,
        response: jsonAnswer('The document.'),
      },
    },
    async (request, reply) => {
      const name = request.params.document.slice(0, -'.json'.length);
      const found = name === 'all' ? await deps.documents.merged() : await deps.documents.find(name);
      if (found === undefined) throw gatewayError('NOT_FOUND', 'There is no such document.');
      reply.header('cache-control', 'public, max-age=30');
      return reply.send(found);
    },
  );
}
