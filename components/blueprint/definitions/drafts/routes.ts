import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  addRoute,
  answer,
  empty,
  json,
  page,
  pageSchema,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { refusals } from '../../errors.ts';
import { smallDefinition } from '../../evaluation/small-definition.ts';
import {
  createDraft,
  type DraftDeps,
  etagOf,
  getDraft,
  parseStored,
  removeDraft,
  replaceDraft,
  scopeOf,
} from './drafts.ts';
import { definitionSchema, draftBody, draftItemSchema, draftStatuses } from './schemas.ts';
import { type Draft, type DraftItem, listDrafts } from './store.ts';

export interface DraftRouteDeps extends DraftDeps {
  readonly idempotency: Idempotency;
}

const route = { tag: 'Blueprints', policy: 'CanManageBlueprints', rateLimit: 'Api' } as const;
const draftPath = '/api/blueprints/:id';
const draftParams = z.object({ id: z.string() });
const listQuery = paging().extend({
  search: z.string().min(1).max(200).optional().describe('Part of the title, the description or the id.'),
  status: z.enum(draftStatuses).optional().describe('Archived: deleted drafts.'),
});
const conditional = z.object({
  'if-match': z.string().max(1_000).optional().describe('ETag of the revision that is changed.'),
});
const tagged = { etag: 'Revision of the draft.' };

/** `resource` of a route about one draft: the draft of the path, if the caller may see it. */
function draftOf(deps: Pick<DraftDeps, 'db'>) {
  return ({ caller, params }: { readonly caller: Caller; readonly params: { readonly id: string } }) =>
    getDraft(deps, caller, params.id);
}

function presentDraft(draft: Draft) {
  const { organizationId, revision, createdAt, updatedAt, blueprintId, title, description } = draft;
  return {
    ...parseStored(draft),
    id: blueprintId,
    title,
    description,
    version: revision,
    organizationId,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}

function presentItem({ createdAt, updatedAt, latestPublicationTxId, ...item }: DraftItem) {
  return {
    ...item,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    ...(latestPublicationTxId !== undefined && { latestPublicationTxId }),
  };
}

/** Mounts the drafts of organisations. */
export function mountDraftRoutes(app: App, deps: DraftRouteDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/blueprints',
    operationId: 'listBlueprintDrafts',
    summary: 'Drafts of your organisation, newest first',
    query: listQuery,
    answers: { 200: json('A page of drafts.', pageSchema(draftItemSchema)) },
    refusals: refusals('ORGANIZATION_REQUIRED'),
    handle: async ({ caller, query }) => {
      const window = { ...scopeOf(caller), search: query.search, status: query.status, ...pageWindow(query) };
      const { items, total } = await listDrafts(deps.db.read, window);
      return page(items.map(presentItem), query, total);
    },
  });
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/blueprints',
    operationId: 'createBlueprintDraft',
    summary: 'Store the definition of a workflow as a draft of your organisation',
    body: { schema: draftBody, example: smallDefinition },
    idempotency: deps.idempotency,
    answers: { 201: json('The draft.', definitionSchema, { ...tagged, location: 'Path of the draft.' }) },
    refusals: refusals('ORGANIZATION_REQUIRED', 'BLUEPRINT_ID_TAKEN', 'DRAFT_LIMIT', 'DEFINITION_TOO_LARGE'),
    handle: async ({ caller, body }) => {
      const draft = await createDraft(deps, caller, body);
      const location = `/api/blueprints/${draft.id}`;
      return answer(201, presentDraft(draft), { location, etag: etagOf(draft.revision) });
    },
  });
  const one = { ...route, path: draftPath, params: draftParams } as const;
  addRoute(app, {
    ...one,
    method: 'GET',
    operationId: 'getBlueprintDraft',
    summary: 'The draft',
    resource: draftOf(deps),
    answers: { 200: json('The draft.', definitionSchema, tagged) },
    refusals: refusals('BLUEPRINT_NOT_FOUND', 'ORGANIZATION_REQUIRED'),
    handle: ({ resource }) => answer(200, presentDraft(resource), { etag: etagOf(resource.revision) }),
  });
  addRoute(app, {
    ...one,
    method: 'PUT',
    operationId: 'updateBlueprintDraft',
    summary: 'Replace the definition of the draft',
    headers: conditional,
    body: { schema: draftBody, example: smallDefinition },
    resource: draftOf(deps),
    answers: { 200: json('The draft.', definitionSchema, tagged) },
    refusals: refusals(
      'BLUEPRINT_NOT_FOUND',
      'ORGANIZATION_REQUIRED',
      'REVISION_MISMATCH',
      'BLUEPRINT_ID_FIXED',
      'DEFINITION_TOO_LARGE',
    ),
    handle: async ({ resource, body, request }) => {
      const draft = await replaceDraft(deps, resource, { body, ifMatch: request.headers['if-match'] });
      return answer(200, presentDraft(draft), { etag: etagOf(draft.revision) });
    },
  });
  addRoute(app, {
    ...one,
    method: 'DELETE',
    operationId: 'deleteBlueprintDraft',
    summary: 'Delete the draft; its publications stay',
    headers: conditional,
    resource: draftOf(deps),
    answers: { 204: empty('The draft is deleted.') },
    refusals: refusals('BLUEPRINT_NOT_FOUND', 'ORGANIZATION_REQUIRED', 'REVISION_MISMATCH'),
    handle: ({ resource, request }) => removeDraft(deps, resource, request.headers['if-match']),
  });
}
