import { z } from 'zod';
import { readableText } from '#core/encoding/readable.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, addRoute, answer, bearerOf, json } from '#kit/http/http.ts';
import { ofDefinitionRules, refusals } from '../../errors.ts';
import { registerIdSchema, txIdSchema } from '../../identifiers.ts';
import { getDraft } from '../drafts/drafts.ts';
import { findingSchema } from '../judging/schemas.ts';
import { type AmendDeps, amendPublication } from './amend.ts';
import { type PublishDeps, publishDraft } from './publish.ts';

export interface PublishingRouteDeps extends PublishDeps, AmendDeps {
  readonly db: PublishDeps['db'];
  readonly registers: PublishDeps['registers'];
  readonly clock: PublishDeps['clock'];
  readonly index: PublishDeps['index'];
  readonly idempotency: Idempotency;
}

const text = z.string();

const publishBody = z.strictObject({
  registerId: registerIdSchema,
  override: z
    .strictObject({
      confirm: z
        .boolean()
        .describe('Publishes a behaviour that passed no rehearsal; it is recorded who did.'),
      reason: readableText.min(1).max(1_000).optional(),
    })
    .optional(),
});

const amendBody = z.strictObject({
  registerId: registerIdSchema,
  blueprintId: z.string().min(1).max(64),
  publicationTxId: txIdSchema,
});

const publishedSchema = z
  .object({
    blueprintId: text,
    version: z.int().describe('Ordinal of the publication; expected, until it is sealed.'),
    registerId: text,
    publishedAt: text.describe('ISO 8601, UTC.'),
    overridden: z.boolean(),
    warnings: z.array(findingSchema).optional(),
    publicationTxId: text,
    execDefHash: text,
    sealed: z.boolean(),
    alreadyPublished: z.boolean(),
  })
  .meta({ id: 'PublishedBlueprint' });

const amendedSchema = z
  .object({
    draftBlueprintId: text.describe('Names the draft in paths.'),
    sourcePublicationTxId: text,
    registerId: text,
  })
  .meta({ id: 'AmendingDraft' });

const ofGovernance = refusals(
  'PUBLISH_ROLE_REQUIRED',
  'GOVERNANCE_ROSTER_NOT_SEALED',
  'GOVERNANCE_ROSTER_UNAVAILABLE',
  'WALLETS_UNAVAILABLE',
  'REGISTER_UNAVAILABLE',
  'ORGANIZATION_REQUIRED',
);
const exampleRegister = '0123456789abcdef0123456789abcdef';

/** Mounts publishing, and the drafts of publications. */
export function mountPublishingRoutes(app: App, deps: PublishingRouteDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/blueprints/:id/publish',
    operationId: 'publishBlueprintDraft',
    tag: 'Blueprints',
    summary: 'Publish the draft on a register whose roster lets you',
    policy: 'CanPublishBlueprints',
    rateLimit: 'Api',
    params: z.object({ id: z.string() }),
    body: {
      schema: publishBody,
      example: {
        registerId: exampleRegister,
        override: { confirm: true, reason: 'Only a text has changed' },
      },
    },
    resource: ({ caller, params }) => getDraft(deps, caller, params.id),
    answers: { 200: json('The publication.', publishedSchema) },
    refusals: [
      ...ofGovernance,
      ...ofDefinitionRules,
      ...refusals('BLUEPRINT_NOT_FOUND', 'DRAFT_JUDGING_BUSY', 'BLUEPRINT_ID_TAKEN'),
      ...refusals('REHEARSAL_REQUIRED', 'REGISTER_REFUSED'),
    ],
    handle: ({ caller, body, resource, request }) =>
      publishDraft(deps, { caller, bearer: bearerOf(request) }, resource, body),
  });
  addRoute(app, {
    method: 'POST',
    path: '/api/blueprints/from-published',
    operationId: 'createBlueprintDraftOfPublication',
    tag: 'Blueprints',
    summary: 'Make a draft of a publication, to publish the blueprint again',
    policy: 'CanManageBlueprints',
    rateLimit: 'Api',
    body: {
      schema: amendBody,
      example: {
        registerId: exampleRegister,
        blueprintId: 'invoice-approval',
        publicationTxId: '0'.repeat(64),
      },
    },
    idempotency: deps.idempotency,
    answers: { 201: json('The draft.', amendedSchema, { location: 'Path of the draft.' }) },
    refusals: [
      ...ofGovernance,
      ...refusals('PUBLICATION_NOT_FOUND', 'DRAFT_LIMIT', 'DEFINITION_TOO_LARGE', 'BLUEPRINT_ID_TAKEN'),
    ],
    handle: async ({ caller, body, request }) => {
      const amended = await amendPublication(deps, { caller, bearer: bearerOf(request) }, body);
      return answer(201, amended, { location: `/api/blueprints/${amended.draftBlueprintId}` });
    },
  });
}
