import { z } from 'zod';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { findTxId } from '#core/ledger/register-id.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, addRoute, json, page, pageSchema, pageWindow, paging } from '#kit/http/http.ts';
import {
  findPayload,
  findVersion,
  listBlueprints,
  listVersions,
  type PublishedVersion,
  type VersionKey,
} from '../../blueprints/publications/store.ts';
import { definitionOf } from '../../blueprints/publishing/publish.ts';
import { definitionExample } from '../../blueprints/publishing/schemas.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { storable } from '../../database/text.ts';
import { refusal, refusals } from '../../errors.ts';
import { findRegister, type SeenRegister } from '../../registers/state/store.ts';
import { classify } from './classify.ts';
import { presentBlueprint, presentDefinition, presentState, presentVersion } from './present.ts';
import {
  blueprintSchema,
  changeSchema,
  definitionSchema,
  systemRegisterSchema,
  versionSchema,
} from './schemas.ts';
import { loadSystemRegister } from './state.ts';

export interface SystemRegisterDeps {
  readonly db: Reader<RegisterSchema>;
  readonly registerId: string;
  readonly networkId: string;
}

const route = { tag: 'System register', policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
const blueprintId = storable(256).min(1);
const params = z.object({ blueprintId });
const largestNumber = 2_147_483_647;

/** `major.minor`, an ordinal, or the id of the publication. */
function versionKey(text: string): VersionKey {
  const txId = findTxId(text);
  if (txId !== undefined) return { txId };
  const [, first = '', second] = /^(\d{1,10})(?:\.(\d{1,10}))?$/.exec(text) ?? [];
  const numbers = [Number(first), Number(second ?? 0)] as const;
  const isNumber = first !== '' && numbers.every((each) => each <= largestNumber);
  if (!isNumber) throw refusal('BLUEPRINT_NOT_FOUND');
  return second === undefined ? { ordinal: numbers[0] } : { major: numbers[0], minor: numbers[1] };
}

async function getSystemRegister({ db, registerId }: SystemRegisterDeps): Promise<SeenRegister> {
  const register = await findRegister(db, registerId);
  if (register === undefined) throw refusal('BLUEPRINT_NOT_FOUND');
  return register;
}

async function getVersion(
  deps: SystemRegisterDeps,
  { registerNo }: SeenRegister,
  id: string,
  key: VersionKey,
): Promise<PublishedVersion> {
  const version = await findVersion(deps.db, { registerNo, blueprintId: id }, key);
  if (version === undefined) throw refusal('BLUEPRINT_NOT_FOUND');
  return version;
}

const payloadShape = z.object({ definition: z.record(z.string(), z.unknown()) });

/** The definition of a version from its sealed bytes. */
async function definitionIn(
  { db }: SystemRegisterDeps,
  { registerNo }: SeenRegister,
  version: PublishedVersion,
) {
  const payload = await findPayload(db, registerNo, version);
  if (payload === undefined) throw refusal('BLUEPRINT_NOT_FOUND');
  return payloadShape.parse(toValue(scanJson(payload))).definition;
}

/** What routes about one blueprint share. */
function ofBlueprint(deps: SystemRegisterDeps) {
  return {
    ...route,
    resource: () => getSystemRegister(deps),
    refusals: refusals('BLUEPRINT_NOT_FOUND'),
  } as const;
}

function mountVersions(app: App, deps: SystemRegisterDeps): void {
  addRoute(app, {
    ...ofBlueprint(deps),
    method: 'GET',
    path: '/api/system-register/blueprints/:blueprintId/versions/:version',
    operationId: 'getBlueprintVersion',
    summary: 'One version, by number, ordinal or publication',
    params: params.extend({ version: z.string().max(64) }),
    answers: { 200: json('The definition.', definitionSchema) },
    handle: async ({ params: named, resource }) => {
      const version = await getVersion(deps, resource, named.blueprintId, versionKey(named.version));
      return presentDefinition(version, await definitionIn(deps, resource, version));
    },
  });

  addRoute(app, {
    ...ofBlueprint(deps),
    method: 'GET',
    path: '/api/system-register/blueprints/:blueprintId/versions',
    operationId: 'listBlueprintVersions',
    summary: 'Versions of a blueprint, newest first',
    params,
    query: paging({ defaultSize: 100 }),
    answers: { 200: json('The versions.', z.array(versionSchema)) },
    handle: async ({ params: named, query, resource: { registerNo } }) => {
      const of = { registerNo, blueprintId: named.blueprintId };
      const versions = await listVersions(deps.db, of, pageWindow(query));
      if (versions.length === 0 && query.page === 1) throw refusal('BLUEPRINT_NOT_FOUND');
      return versions.map(presentVersion);
    },
  });
}

function mountClassification(app: App, deps: SystemRegisterDeps): void {
  addRoute(app, {
    ...ofBlueprint(deps),
    method: 'POST',
    path: '/api/system-register/blueprints/:blueprintId/classify-change',
    operationId: 'classifyBlueprintChange',
    summary: 'The version that publishing a definition would give',
    rateLimit: 'Strict',
    params,
    body: {
      schema: z.strictObject({ newBlueprint: z.record(z.string(), z.unknown()) }),
      example: { newBlueprint: definitionExample },
    },
    answers: { 200: json('The classification.', changeSchema) },
    refusals: refusals('BLUEPRINT_NOT_FOUND', 'VAL_SCHEMA_001', 'VAL_STRUCT_012', 'TRANSACTION_TOO_LARGE'),
    handle: async ({ params: named, body, resource }) => {
      const id = named.blueprintId;
      const version = await getVersion(deps, resource, id, 'latest');
      const proposed = definitionOf(id, body.newBlueprint);
      const definition = await definitionIn(deps, resource, version);
      return classify(deps.db, resource, { version, definition }, proposed);
    },
  });
}

/** The system register and its blueprints, for every signed-in caller. */
export function mountSystemRegister(app: App, deps: SystemRegisterDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/system-register',
    operationId: 'getSystemRegister',
    summary: 'The system register and whether it is ready',
    answers: { 200: json('The system register.', systemRegisterSchema) },
    refusals: [],
    handle: async () => presentState(await loadSystemRegister(deps.db, deps.registerId), deps),
  });

  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/system-register/blueprints',
    operationId: 'listBlueprints',
    summary: 'Blueprints of the system register',
    query: paging(),
    answers: { 200: json('A page of blueprints.', pageSchema(blueprintSchema)) },
    refusals: [],
    handle: async ({ query }) => {
      const register = await findRegister(deps.db, deps.registerId);
      const { items, total } =
        register === undefined
          ? { items: [], total: 0 }
          : await listBlueprints(deps.db, register.registerNo, pageWindow(query));
      return page(items.map(presentBlueprint), query, total);
    },
  });

  addRoute(app, {
    ...ofBlueprint(deps),
    method: 'GET',
    path: '/api/system-register/blueprints/:blueprintId',
    operationId: 'getBlueprint',
    summary: 'The latest version of a blueprint',
    params,
    answers: { 200: json('The definition.', definitionSchema) },
    handle: async ({ params: named, resource }) => {
      const version = await getVersion(deps, resource, named.blueprintId, 'latest');
      return presentDefinition(version, await definitionIn(deps, resource, version));
    },
  });

  mountVersions(app, deps);
  mountClassification(app, deps);
}
