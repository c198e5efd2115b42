import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import { type App, addRoute, answer, errorAnswer, json, media, refusalOf } from '#kit/http/http.ts';
import { refusal, refusals } from '../../errors.ts';
import { scopeOf } from '../../registers/state/access.ts';
import type { Scope } from '../../registers/state/store.ts';
import { ENTITY_SETS, type EntitySet, type SetName } from '../language/model.ts';
import type { Freshness } from '../projection/freshness.ts';
import {
  printStart,
  type RawOptions,
  readCountOptions,
  readEntityOptions,
  readKey,
  readOptions,
} from '../scan/options.ts';
import { planFilter } from '../scan/plan.ts';
import { type Found, type Search, type SearchDeps, search } from '../scan/search.ts';
import { metadataJson, metadataXml, serviceDocument } from './metadata.ts';
import { contextUrl, presentEntity } from './present.ts';
import { entitiesSchema, entitySchema, errorSchema, modelSchema, serviceDocumentSchema } from './schemas.ts';

export interface ODataDeps {
  readonly database: SearchDeps;
  readonly clock: Clock;
  readonly freshness: Pick<Freshness, 'settleAll'>;
}

const defaultPageSize = 20;
const largestPage = 100;
const jsonType = 'application/json;odata.metadata=minimal;charset=utf-8';

const filter = z.string().optional().describe('eq ne gt ge lt le in and or not; contains, startswith, …');
const select = z.string().optional().describe('Names of properties.');
const format = z.string().optional();

const collectionQuery = z
  .object({
    $filter: filter,
    $select: select,
    $orderby: z.string().optional().describe('Expressions, each with asc or desc.'),
    $top: z.string().optional().describe('0 to 100.'),
    $skip: z.string().optional().describe('0 to 10000.'),
    $count: z.string().optional().describe('true adds @odata.count.'),
    $skiptoken: z.string().optional().describe('From @odata.nextLink.'),
    $format: format,
  })
  .catchall(z.string());
const refused = errorAnswer(errorSchema);
const errors = { 400: refused, 403: refused, 404: refused, 501: refused };

const entityQuery = z.object({ $select: select, $format: format }).catchall(z.string());
const countQuery = z.object({ $filter: filter }).catchall(z.string());
const formatQuery = z.object({ $format: format }).catchall(z.string());

/** Sends refusals of a query in OData's format; other errors use the common handler. */
function sendODataError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, code, message, details = {} } = refusalOf(error);
  if (![400, 403, 404, 501].includes(status)) throw error;
  const { option, position } = details;
  reply
    .code(status)
    .header('odata-version', '4.0')
    .header('cache-control', 'no-store')
    .type(jsonType)
    .send(
      JSON.stringify({
        error: {
          code,
          message,
          ...(option !== undefined && { target: option }),
          ...(position !== undefined && { innererror: { position } }),
          '@Chancery.traceId': request.traceId,
        },
      }),
    );
}

const common = {
  method: 'GET',
  tag: 'OData',
  policy: 'RequireAuthenticated',
  rateLimit: 'Api',
  protocol: { errorHandler: sendODataError, refusals: errors },
} as const;

/** Refusals of a query of one or more entities. */
const ofQueries = refusals('QUERY_INVALID', 'QUERY_NOT_SUPPORTED', 'QUERY_TOO_BROAD', 'QUERY_TIMEOUT');

const version = { 'odata-version': '4.0' } as const;
const jsonHeaders = { ...version, 'content-type': jsonType } as const;

const optionsOf = (query: object): RawOptions =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));

/** Address of the service as the client sees it, with a trailing slash. */
const baseOf = (request: FastifyRequest) => `${request.protocol}://${request.host}/odata/`;

const nowMicros = (deps: ODataDeps) => deps.clock.nowMicros();

/** Searches when the index rows of what is sealed are written. */
async function searchFresh(deps: ODataDeps, scope: Scope, query: Search): Promise<Found> {
  if (query.set.name === 'Transactions')
    await deps.freshness.settleAll(scope, planFilter(query.filter).registerIds);
  return search(deps.database, scope, query);
}

/** Page size that the client prefers: `Prefer: odata.maxpagesize`. */
function preferredSize(request: FastifyRequest): number | undefined {
  const header = String(request.headers['prefer'] ?? '');
  const found = /(?:^|[,;\s])(?:odata\.)?maxpagesize\s*=\s*"?(\d{1,6})"?\s*(?:[,;]|$)/i.exec(header);
  const size = found === null ? 0 : Number(found[1]);
  return size === 0 ? undefined : Math.min(size, largestPage);
}

/** Link to the next page: the same options from another place, with the rest of `$top`. */
function nextLink(
  base: string,
  set: EntitySet,
  options: RawOptions,
  { next, rows }: Found,
): string | undefined {
  const { $skip: _skip, $top: top, ...kept } = options;
  const left = top === undefined ? undefined : Number(top) - rows.length;
  if (next === undefined || left === 0) return undefined;
  const query = new URLSearchParams({
    ...kept,
    ...(left !== undefined && { $top: String(left) }),
    $skiptoken: printStart(next),
  });
  return `${base}${set.name}?${query}`;
}

function mountSet(app: App, deps: ODataDeps, set: EntitySet): void {
  addRoute(app, {
    ...common,
    path: `/odata/${set.name}`,
    operationId: `listOdata${set.name}`,
    summary: `${set.name} of your organisation`,
    query: collectionQuery,
    answers: { 200: json('A page of entities.', entitiesSchema(set)) },
    refusals: ofQueries,
    handle: async ({ caller, query, request }) => {
      const raw = optionsOf(query);
      const options = readOptions(set, raw, nowMicros(deps));
      const preferred = preferredSize(request);
      const found = await searchFresh(deps, scopeOf(caller), {
        set,
        ...options,
        limit: Math.min(options.top ?? largestPage, preferred ?? options.top ?? defaultPageSize),
      });
      const base = baseOf(request);
      const link = nextLink(base, set, raw, found);
      const { count } = found;
      const body = {
        '@odata.context': contextUrl(base, set, options.select),
        ...(count && { '@odata.count': count.total }),
        ...(count?.exact === false && { '@Chancery.countIsLowerBound': true }),
        value: found.rows.map((row) => presentEntity(set, row, options.select)),
        ...(link !== undefined && { '@odata.nextLink': link }),
      };
      const applied = preferred === undefined ? undefined : `odata.maxpagesize=${preferred}`;
      return answer(200, body, { ...jsonHeaders, 'preference-applied': applied });
    },
  });
}

function mountCount(app: App, deps: ODataDeps, set: EntitySet): void {
  addRoute(app, {
    ...common,
    path: `/odata/${set.name}/$count`,
    operationId: `countOdata${set.name}`,
    summary: `Number of ${set.name}`,
    query: countQuery,
    answers: { 200: media('text/plain', 'The number.') },
    refusals: ofQueries,
    handle: async ({ caller, query }) => {
      const { count } = await searchFresh(deps, scopeOf(caller), {
        set,
        filter: readCountOptions(set, optionsOf(query), nowMicros(deps)),
        orderings: [],
        start: { after: undefined, offset: 0 },
        limit: 0,
        count: true,
      });
      if (count?.exact === false) {
        throw refusal('QUERY_TOO_BROAD', {
          message: `There are more than ${count.total}; narrow the filter.`,
        });
      }
      return answer(200, String(count?.total ?? 0), {
        ...version,
        'content-type': 'text/plain;charset=utf-8',
      });
    },
  });
}

const resource = /^(Registers|Transactions|Dockets)\((.*)\)$/s;

function mountEntity(app: App, deps: ODataDeps): void {
  addRoute(app, {
    ...common,
    path: '/odata/:resource',
    operationId: 'getOdataEntity',
    summary:
      "One entity by its key: Registers('id'), Transactions('txId'), Dockets(registerId='id',docketNumber=0)",
    params: z.object({ resource: z.string() }),
    query: entityQuery,
    answers: { 200: json('The entity.', entitySchema) },
    refusals: [...ofQueries, ...refusals('ENTITY_NOT_FOUND')],
    handle: async ({ caller, params, query, request }) => {
      const [, name, key = ''] = resource.exec(params.resource) ?? [];
      if (name === undefined) throw refusal('ENTITY_NOT_FOUND');
      const set = ENTITY_SETS[name as SetName];
      const selected = readEntityOptions(set, optionsOf(query));
      const { rows } = await searchFresh(deps, scopeOf(caller), {
        set,
        filter: readKey(set, key, nowMicros(deps)),
        orderings: [],
        start: { after: undefined, offset: 0 },
        limit: 1,
        count: false,
      });
      const [row] = rows;
      if (row === undefined) throw refusal('ENTITY_NOT_FOUND');
      const body = {
        '@odata.context': contextUrl(baseOf(request), set, selected, true),
        ...presentEntity(set, row, selected),
      };
      return answer(200, body, jsonHeaders);
    },
  });
}

function mountDocuments(app: App): void {
  const paths = [
    ['/odata', 'listOdataEntitySets'],
    ['/odata/', 'getOdataServiceDocument'],
  ] as const;
  for (const [path, operationId] of paths) {
    addRoute(app, {
      ...common,
      path,
      operationId,
      summary: 'The entity sets',
      query: formatQuery,
      answers: { 200: json('The service document.', serviceDocumentSchema) },
      refusals: [],
      handle: ({ request }) => answer(200, serviceDocument(baseOf(request)), jsonHeaders),
    });
  }
  addRoute(app, {
    ...common,
    path: '/odata/$metadata',
    operationId: 'getOdataMetadata',
    summary: 'The model: CSDL as XML, or as JSON',
    query: formatQuery,
    answers: { 200: media('application/xml', 'The model.', { 'application/json': modelSchema }) },
    refusals: [],
    handle: ({ query, request }) => {
      const { $format: format = request.headers.accept ?? '' } = query;
      return /json/i.test(format) && !/xml/i.test(format)
        ? answer(200, JSON.stringify(metadataJson()), {
            ...version,
            'content-type': 'application/json;charset=utf-8',
          })
        : answer(200, metadataXml(), { ...version, 'content-type': 'application/xml;charset=utf-8' });
    },
  });
  addRoute(app, {
    ...common,
    method: 'POST',
    path: '/odata/$batch',
    operationId: 'executeOdataBatch',
    summary: 'Not supported',
    answers: {},
    refusals: refusals('QUERY_NOT_SUPPORTED'),
    protocol: { errorHandler: sendODataError, refusals: { 501: refused } },
    handle: () => {
      throw refusal('QUERY_NOT_SUPPORTED', { message: '$batch is not supported.' });
    },
  });
}

/** Read-only OData 4.0 over registers, transactions and dockets. */
export function mountOData(app: App, deps: ODataDeps): void {
  mountDocuments(app);
  for (const set of Object.values(ENTITY_SETS)) {
    mountSet(app, deps, set);
    mountCount(app, deps, set);
  }
  mountEntity(app, deps);
}
