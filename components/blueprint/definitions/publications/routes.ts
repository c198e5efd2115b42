import { z } from 'zod';
import type { Caller } from '#core/identity/claims.ts';
import { findTxId } from '#core/ledger/register-id.ts';
import type { Database } from '#kit/db/db.ts';
import { type App, addRoute, answer, bearerOf, decimal, json } from '#kit/http/http.ts';
import type { BlueprintDatabase } from '../../database/schema.ts';
import { refusal, refusals } from '../../errors.ts';
import { registerIdSchema } from '../../identifiers.ts';
import { findDraft } from '../drafts/store.ts';
import type { PublicationIndex } from './follow.ts';
import { findPublication, type IndexedPublication, listPublications, listRegistersOf } from './store.ts';
import type { CanRead, Subject } from './visibility.ts';

/** Number of running instances of publications, by register and publication: `{registerId} {publicationTxId}`. */
type CountOpenInstances = (
  publications: readonly Pick<IndexedPublication, 'registerId' | 'publicationTxId'>[],
) => Promise<ReadonlyMap<string, number>>;

export interface PublicationRouteDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly index: Pick<PublicationIndex, 'read'>;
  readonly canRead: CanRead;
  readonly countOpenInstances: CountOpenInstances;
}

const text = z.string();
const versionSchema = z
  .object({
    blueprintId: text,
    version: z
      .int()
      .describe('Ordinal among the publications of the blueprint on the register; for display.'),
    publicationTxId: text,
    execDefHash: text,
    structuralHash: text,
    registerId: text,
    publishedAt: text.describe('ISO 8601, UTC: when it was sealed.'),
    publishedBy: text.describe('DID of the publisher.'),
    overridden: z.boolean().describe('Published here without a rehearsal.'),
    openInstances: z.int().describe('Instances that are not completed and did not fail.'),
  })
  .meta({ id: 'BlueprintPublicationVersion' });

const publishedSchema = z.looseObject({ id: text, title: text }).meta({ id: 'PublishedDefinition' });

const versionsQuery = z.object({ registerId: registerIdSchema.optional() });
const versionParams = z.object({ id: z.string(), ordinal: decimal({ min: 1, max: 2_147_483_647 }) });
const definitionParams = z.object({ id: z.string(), publicationTxId: z.string() });

const route = {
  method: 'GET',
  tag: 'Blueprints',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
} as const;

/** Registers of one answer that are asked whether the caller may read them. */
const mostRegisters = 200;

/** The blueprint that a path names: by a draft of the caller's organisation, or by its own id. */
async function blueprintOf({ db }: PublicationRouteDeps, caller: Caller, id: string): Promise<string> {
  const { organizationId } = caller;
  if (organizationId === undefined) return id;
  return (await findDraft(db.read, { organizationId }, id))?.blueprintId ?? id;
}

async function readable(
  deps: PublicationRouteDeps,
  subject: Subject,
  blueprintId: string,
): Promise<ReadonlySet<string>> {
  const known = await listRegistersOf(deps.db.read, blueprintId);
  const allowed = new Set<string>();
  for (const each of known.slice(0, mostRegisters)) if (await deps.canRead(subject, each)) allowed.add(each);
  return allowed;
}

async function listVersions(
  deps: PublicationRouteDeps,
  subject: Subject,
  query: {
    readonly blueprintId: string;
    readonly registerId?: string | undefined;
    readonly ordinal?: number;
  },
) {
  if (query.registerId !== undefined) await deps.index.read(query.registerId);
  const allowed = await readable(deps, subject, query.blueprintId);
  const all = await listPublications(deps.db.read, query);
  const shown = all.filter((one) => allowed.has(one.registerId));
  const open = await deps.countOpenInstances(shown);
  return shown.map((one) => ({
    blueprintId: one.blueprintId,
    version: one.ordinal,
    publicationTxId: one.publicationTxId,
    execDefHash: one.execDefHash,
    structuralHash: one.structuralHash,
    registerId: one.registerId,
    publishedAt: one.sealedAt,
    publishedBy: one.publishedBy,
    overridden: one.overridden,
    openInstances: open.get(`${one.registerId} ${one.publicationTxId}`) ?? 0,
  }));
}

/** Mounts the reads of publications. */
export function mountPublicationRoutes(app: App, deps: PublicationRouteDeps): void {
  addRoute(app, {
    ...route,
    path: '/api/blueprints/:id/versions',
    operationId: 'listBlueprintPublications',
    summary: 'Publications of the blueprint on registers that you may read, newest first',
    params: z.object({ id: z.string() }),
    query: versionsQuery,
    answers: { 200: json('The publications.', z.array(versionSchema)) },
    refusals: refusals('REGISTER_UNAVAILABLE'),
    handle: async ({ caller, params, query, request }) => {
      const blueprintId = await blueprintOf(deps, caller, params.id);
      return listVersions(deps, { caller, bearer: bearerOf(request) }, { blueprintId, ...query });
    },
  });
  addRoute(app, {
    ...route,
    path: '/api/blueprints/:id/versions/:ordinal',
    operationId: 'getBlueprintPublication',
    summary: 'The publication with an ordinal; of several registers the newest',
    params: versionParams,
    query: versionsQuery,
    answers: { 200: json('The publication.', versionSchema) },
    refusals: refusals('PUBLICATION_NOT_FOUND', 'REGISTER_UNAVAILABLE'),
    handle: async ({ caller, params, query, request }) => {
      const blueprintId = await blueprintOf(deps, caller, params.id);
      const wanted = { blueprintId, ordinal: params.ordinal, ...query };
      const [found] = await listVersions(deps, { caller, bearer: bearerOf(request) }, wanted);
      if (found === undefined) throw refusal('PUBLICATION_NOT_FOUND');
      return found;
    },
  });
  addRoute(app, {
    ...route,
    path: '/api/blueprints/:id/definitions/:publicationTxId',
    operationId: 'getPublishedDefinition',
    summary: 'The definition of a publication',
    params: definitionParams,
    answers: {
      200: json('The definition as it is sealed.', publishedSchema, { 'cache-control': 'Immutable.' }),
    },
    refusals: refusals('PUBLICATION_NOT_FOUND', 'REGISTER_UNAVAILABLE'),
    handle: async ({ caller, params, request }) => {
      const publicationTxId = findTxId(params.publicationTxId);
      const blueprintId = await blueprintOf(deps, caller, params.id);
      const [found] =
        publicationTxId === undefined
          ? []
          : await listPublications(deps.db.read, { blueprintId, publicationTxId });
      const subject = { caller, bearer: bearerOf(request) };
      if (found === undefined || !(await deps.canRead(subject, found.registerId)))
        throw refusal('PUBLICATION_NOT_FOUND');
      const { id, title } = found.definition;
      const definition = { ...found.definition, id: String(id), title: String(title) };
      // The answer depends on the caller's right to read the register, so shared caches must not keep it.
      return answer(200, definition, { 'cache-control': 'private, max-age=31536000, immutable' });
    },
  });
}

/** The publication of a register that a request names, else the latest, if the caller may read the register. */
export async function getPublication(
  deps: Pick<PublicationRouteDeps, 'db' | 'index' | 'canRead'>,
  subject: Subject,
  query: {
    readonly registerId: string;
    readonly blueprintId: string;
    readonly publicationTxId?: string | undefined;
  },
): Promise<IndexedPublication> {
  if (!(await deps.canRead(subject, query.registerId))) throw refusal('PUBLICATION_NOT_FOUND');
  await deps.index.read(query.registerId);
  const found = await findPublication(deps.db.read, query);
  if (found === undefined) throw refusal('PUBLICATION_NOT_FOUND');
  return found;
}
