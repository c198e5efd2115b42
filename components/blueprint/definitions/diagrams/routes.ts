import { z } from 'zod';
import { drawMermaid } from '#core/blueprint/diagram/mermaid.ts';
import { drawDiagram } from '#core/blueprint/diagram/svg.ts';
import { type App, addRoute, answer, media } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { compileDefinition } from '../../evaluation/action.ts';
import { type DraftDeps, getDraft, parseStored } from '../drafts/drafts.ts';

const mermaid = 'text/vnd.mermaid';

/** Mounts the picture of a draft. */
export function mountDiagramRoutes(app: App, deps: Pick<DraftDeps, 'db'>): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/blueprints/:id/diagram',
    operationId: 'getBlueprintDiagram',
    tag: 'Blueprints',
    summary: 'The workflow of the draft as a picture',
    policy: 'CanManageBlueprints',
    rateLimit: 'Api',
    params: z.object({ id: z.string() }),
    query: z.object({ format: z.enum(['svg', 'mermaid']).default('svg') }),
    resource: ({ caller, params }) => getDraft(deps, caller, params.id),
    answers: { 200: media('image/svg+xml', 'The picture.', { [mermaid]: z.string() }) },
    refusals: refusals('BLUEPRINT_NOT_FOUND', 'ORGANIZATION_REQUIRED', 'DEFINITION_UNUSABLE'),
    handle: ({ resource, query }) => {
      const compiled = compileDefinition(parseStored(resource));
      if (compiled === undefined) throw refusal('DEFINITION_UNUSABLE');
      const { blueprint } = compiled;
      if (query.format === 'mermaid') return answer(200, drawMermaid(blueprint), { 'content-type': mermaid });
      return answer(200, drawDiagram(blueprint), { 'content-security-policy': "default-src 'none'" });
    },
  });
}
