import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { type App, addRoute, empty, json } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { originOf } from '../../requests/origin.ts';
import { freshnessOf } from './freshness.ts';
import { importTrustList, MAX_LIST_BYTES, removeTrustList, type TrustListDeps } from './import-list.ts';
import {
  anchorsSchema,
  detailSchema,
  importSchema,
  presentAnchors,
  presentDetail,
  presentSnapshot,
  snapshotSchema,
  trustListId,
} from './schemas.ts';
import type { Snapshot } from './snapshot.ts';
import { findActive, listActive, listAnchors, listVersions } from './store.ts';
import { createUploads, type Uploads } from './uploads.ts';

const base = '/api/v1/trust/trustlists';
const route = { tag: 'Trust lists', rateLimit: 'Strict' } as const;
const administers = { ...route, policy: 'RequireSystemAdmin' } as const;
const ofList = z.object({ trustListId });

/** Trust lists (specification document 3, "Trust administration"). */
export function mountTrustLists(app: App, deps: TrustListDeps): void {
  mountImport(app, deps);
  mountReads(app, deps);
  addRoute(app, {
    ...administers,
    method: 'DELETE',
    path: `${base}/:trustListId`,
    operationId: 'deleteTrustList',
    summary: 'Remove a trust list, with all versions',
    params: ofList,
    answers: { 204: empty('The list is removed.') },
    refusals: refusals('TRUSTLIST_UNAVAILABLE'),
    handle: ({ caller, params, request }) =>
      removeTrustList(deps, { ...params, by: caller, origin: originOf(request) }),
  });
}

function mountImport(app: App, deps: TrustListDeps): void {
  const uploads = createUploads(MAX_LIST_BYTES);
  app.register((scope: App, _options, done) => {
    uploads.accept(scope);
    addImport(scope, deps, uploads);
    done();
  });
}

function addImport(scope: App, deps: TrustListDeps, uploads: Uploads): void {
  addRoute(scope, {
    ...administers,
    method: 'POST',
    path: `${base}/import`,
    operationId: 'addTrustList',
    summary: 'Import a signed trust list',
    description:
      'The list is XML (ETSI TS 119 612) or a compact JWS (ETSI TS 119 602), at most 10 MiB. It is fetched from ' +
      '`sourceUrl`, or uploaded as `multipart/form-data` with the same members and `file` instead of `sourceUrl`.',
    body: {
      schema: importSchema,
      example: {
        trustListId: 'eu-pid',
        sourceUrl: 'https://lists.example.org/pid.xml',
        expectedSignerSha256: '8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4',
      },
    },
    answers: { 201: json('The list is active.', snapshotSchema) },
    refusals: refusals(
      'TRUSTLIST_MALFORMED',
      'TRUSTLIST_SIGNATURE_INVALID',
      'TRUSTLIST_SOURCE_UNAVAILABLE',
      'TRUSTLIST_SEQUENCE_REGRESSION',
      'TRUSTLIST_IMPORT_BUSY',
    ),
    handle: async ({ caller, body, request }) => {
      const { sourceUrl, ...wanted } = body;
      const source = sourceOf(uploads, request, sourceUrl);
      const act = { source, by: caller, origin: originOf(request) };
      const { expectedSignerSha256 } = wanted;
      const snapshot = await importTrustList(deps, { ...wanted, expectedSignerSha256, ...act });
      return presentSnapshot(snapshot, deps.clock.nowMs());
    },
  });
}

function sourceOf(uploads: Uploads, request: FastifyRequest, url: string | undefined) {
  const document = uploads.fileOf(request);
  if (document !== undefined && url === undefined) return { document };
  if (url !== undefined && document === undefined) return { url };
  throw new AppError('invalid', genericCode('invalid'), 'Send either a file or sourceUrl.');
}

function mountReads(app: App, deps: TrustListDeps): void {
  addRoute(app, {
    ...administers,
    method: 'GET',
    path: base,
    operationId: 'listTrustLists',
    summary: 'The active version of every trust list',
    answers: { 200: json('The lists by id.', z.object({ trustLists: z.array(snapshotSchema) })) },
    refusals: [],
    handle: async () => {
      const active = await listActive(deps.db.read);
      return { trustLists: active.map((snapshot) => presentSnapshot(snapshot, deps.clock.nowMs())) };
    },
  });
  addRoute(app, {
    ...administers,
    method: 'GET',
    path: `${base}/:trustListId`,
    operationId: 'getTrustList',
    summary: 'A trust list with its anchors and versions',
    params: ofList,
    resource: ({ params }) => getActive(deps, params.trustListId),
    answers: { 200: json('The list.', detailSchema) },
    refusals: refusals('TRUSTLIST_UNAVAILABLE'),
    handle: async ({ resource }) => {
      const anchors = await listAnchors(deps.db.read, resource);
      const versions = await listVersions(deps.db.read, resource.trustListId);
      return presentDetail(resource, { anchors, versions }, deps.clock.nowMs());
    },
  });
  addRoute(app, {
    ...route,
    policy: 'RequireService',
    method: 'GET',
    path: `${base}/:trustListId/anchors`,
    operationId: 'listTrustListAnchors',
    summary: 'The anchors of a trust list, for services that evaluate trust',
    params: ofList,
    resource: ({ params }) => getActive(deps, params.trustListId),
    answers: { 200: json('The anchors of the active version.', anchorsSchema) },
    refusals: refusals('TRUSTLIST_UNAVAILABLE', 'TRUSTLIST_STALE'),
    handle: async ({ resource }) => {
      const nowMs = deps.clock.nowMs();
      if (deps.strictFreshness && freshnessOf(resource, nowMs) === 'Stale') throw refusal('TRUSTLIST_STALE');
      return presentAnchors(resource, await listAnchors(deps.db.read, resource), nowMs);
    },
  });
}

async function getActive({ db }: TrustListDeps, id: string): Promise<Snapshot> {
  const active = await findActive(db.read, id);
  if (active === undefined) throw refusal('TRUSTLIST_UNAVAILABLE');
  return active;
}
