import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '#kit/clock/clock.ts';
import { type App, callerOf, errorAnswer, jsonAnswer, refusalOf, textAnswer } from '#kit/http/http.ts';
import { refusal } from '../../errors.ts';
import { scopeOf } from '../../registers/state/access.ts';
import { ENTITY_SETS, type EntitySet, type SetName } from '../language/model.ts';
import {
  printStart,
  type RawOptions,
  readCountOptions,
  readEntityOptions,
  readKey,
  readOptions,
} from '../scan/options.ts';
import { type Found, type SearchDeps, search } from '../scan/search.ts';
import { metadataJson, metadataXml, serviceDocument } from './metadata.ts';
import { contextUrl, presentEntity } from './present.ts';

export interface ODataDeps {
  readonly database: SearchDeps;
  readonly clock: Clock;
}

const tags = ['OData'];
const defaultPageSize = 20;
const largestPage = 100;
const json = 'application/json;odata.metadata=minimal;charset=utf-8';

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
/** The JSON format of OData 4.0 for errors (section 19). */
const errorSchema = z
  .object({
    error: z.object({
      code: z.string(),
      message: z.string(),
      target: z.string().optional().describe('The option that cannot be read.'),
      innererror: z.object({ position: z.int() }).optional(),
      '@Chancery.traceId': z.string(),
    }),
  })
  .meta({ id: 'ODataError' });
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
    .type(json)
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

const route = { config: { policy: 'RequireAuthenticated', rateLimit: 'Api' } } as const;
const shared = { ...route, errorHandler: sendODataError } as const;

const optionsOf = (query: object): RawOptions =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));

/** Address of the service as the client sees it, with a trailing slash. */
const baseOf = (request: FastifyRequest) => `${request.protocol}://${request.host}/odata/`;

const nowMicros = (deps: ODataDeps) => deps.clock.nowMicros();

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
  app.get(
    `/odata/${set.name}`,
    {
      ...shared,
      schema: {
        operationId: `listOdata${set.name}`,
        tags,
        summary: `${set.name} of your organisation`,
        querystring: collectionQuery,
        response: { ...jsonAnswer('A page of entities.'), ...errors },
      },
    },
    async (request, reply) => {
      const raw = optionsOf(request.query);
      const options = readOptions(set, raw, nowMicros(deps));
      const preferred = preferredSize(request);
      if (preferred !== undefined) reply.header('preference-applied', `odata.maxpagesize=${preferred}`);
      const found = await search(deps.database, scopeOf(callerOf(request)), {
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
      return reply.header('odata-version', '4.0').type(json).send(JSON.stringify(body));
    },
  );
}

function mountCount(app: App, deps: ODataDeps, set: EntitySet): void {
  app.get(
    `/odata/${set.name}/$count`,
    {
      ...shared,
      schema: {
        operationId: `countOdata${set.name}`,
        tags,
        summary: `Number of ${set.name}`,
        querystring: countQuery,
        response: { ...textAnswer('text/plain', 'The number.'), ...errors },
      },
    },
    async (request, reply) => {
      const { count } = await search(deps.database, scopeOf(callerOf(request)), {
        set,
        filter: readCountOptions(set, optionsOf(request.query), nowMicros(deps)),
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
      return reply
        .header('odata-version', '4.0')
        .type('text/plain;charset=utf-8')
        .send(String(count?.total ?? 0));
    },
  );
}

const resource = /^(Registers|Transactions|Dockets)\((.*)\)$/s;

function mountEntity(app: App, deps: ODataDeps): void {
  app.get(
    '/odata/:resource',
    {
      ...shared,
      schema: {
        operationId: 'getOdataEntity',
        tags,
        summary:
          "One entity by its key: Registers('id'), Transactions('txId'), Dockets(registerId='id',docketNumber=0)",
        params: z.object({ resource: z.string() }),
        querystring: entityQuery,
        response: { ...jsonAnswer('The entity.'), ...errors },
      },
    },
    async (request, reply) => {
      const [, name, key = ''] = resource.exec(request.params.resource) ?? [];
      if (name === undefined) throw refusal('ENTITY_NOT_FOUND');
      const set = ENTITY_SETS[name as SetName];
      const selected = readEntityOptions(set, optionsOf(request.query));
      const { rows } = await search(deps.database, scopeOf(callerOf(request)), {
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
      return reply.header('odata-version', '4.0').type(json).send(JSON.stringify(body));
    },
  );
}

const metadataAnswer = {
  200: {
    description: 'The model.',
    content: { 'application/xml': { schema: z.string() }, 'application/json': { schema: z.unknown() } },
  },
};

function mountDocuments(app: App): void {
  const paths = [
    ['/odata', 'listOdataEntitySets'],
    ['/odata/', 'getOdataServiceDocument'],
  ] as const;
  for (const [path, operationId] of paths) {
    app.get(
      path,
      {
        ...shared,
        schema: {
          operationId,
          tags,
          summary: 'The entity sets',
          querystring: formatQuery,
          response: { ...jsonAnswer('The service document.'), ...errors },
        },
      },
      async (request, reply) =>
        reply
          .header('odata-version', '4.0')
          .type(json)
          .send(JSON.stringify(serviceDocument(baseOf(request)))),
    );
  }
  app.get(
    '/odata/$metadata',
    {
      ...shared,
      schema: {
        operationId: 'getOdataMetadata',
        tags,
        summary: 'The model: CSDL as XML, or as JSON',
        querystring: formatQuery,
        response: { ...metadataAnswer, ...errors },
      },
    },
    async (request, reply) => {
      const { $format: format = request.headers.accept ?? '' } = request.query;
      reply.header('odata-version', '4.0');
      return /json/i.test(format) && !/xml/i.test(format)
        ? reply.type('application/json;charset=utf-8').send(JSON.stringify(metadataJson()))
        : reply.type('application/xml;charset=utf-8').send(metadataXml());
    },
  );
  app.post(
    '/odata/$batch',
    {
      ...shared,
      schema: {
        operationId: 'executeOdataBatch',
        tags,
        summary: 'Not supported',
        response: { 501: refused },
      },
    },
    async () => {
      throw refusal('QUERY_NOT_SUPPORTED', { message: '$batch is not supported.' });
    },
  );
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
