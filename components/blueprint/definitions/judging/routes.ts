import { z } from 'zod';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, json } from '#kit/http/http.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';
import { refusals } from '../../errors.ts';
import type { DraftJudge } from '../../evaluation/pool.ts';
import { getDraft, parseStored } from '../drafts/drafts.ts';
import { presentFindings } from './present.ts';
import { findingSchema } from './schemas.ts';

export interface JudgingRouteDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly judge: Pick<DraftJudge, 'judge'>;
}

const judgementSchema = z
  .object({
    blueprintId: z.string(),
    title: z.string(),
    isValid: z.boolean().describe('Whether the definition may be published.'),
    validationResults: z.array(findingSchema).describe('What prevents publication.'),
    warnings: z.array(findingSchema),
    execDefHash: z.string().describe('Hash of the behaviour, which rehearsals are recorded for.'),
  })
  .meta({ id: 'BlueprintJudgement' });

const body = z
  .record(z.string(), z.unknown())
  .describe('A definition to judge instead of the stored one; empty for the stored one.');

/** Mounts the validation of drafts. */
export function mountJudgingRoutes(app: App, deps: JudgingRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/blueprints/:id/validate',
    operationId: 'validateBlueprintDraft',
    tag: 'Blueprints',
    summary: 'Judge the draft, or a definition that may replace it, by every rule of publishing',
    policy: 'CanManageBlueprints',
    rateLimit: 'Api',
    params: z.object({ id: z.string() }),
    body: { schema: body, example: {} },
    resource: ({ caller, params }) => getDraft(deps, caller, params.id),
    answers: { 200: json('What was found.', judgementSchema) },
    refusals: refusals('BLUEPRINT_NOT_FOUND', 'ORGANIZATION_REQUIRED', 'DRAFT_JUDGING_BUSY'),
    handle: async ({ body: given, resource }) => {
      const isStored = Object.keys(given).length === 0;
      const definition = isStored ? parseStored(resource) : { id: resource.blueprintId, ...given };
      const { findings, execDefHash } = await deps.judge.judge(definition);
      const { title } = definition;
      return {
        blueprintId: resource.blueprintId,
        title: typeof title === 'string' ? title : '',
        ...presentFindings(findings),
        execDefHash,
      };
    },
  });
}
