import { z } from 'zod';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { findTxId } from '#core/ledger/register-id.ts';
import type { Reader } from '#kit/db/db.ts';
import { type App, jsonAnswer, page, pageWindow, paging } from '#kit/http/http.ts';
import {
  findPayload,
  findVersion,
  listBlueprints,
  listVersions,
  type PublishedVersion,
  type VersionKey,
} from '../../blueprints/publications/store.ts';
import { definitionOf } from '../../blueprints/publishing/publish.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { storable } from '../../database/text.ts';
import { refusal } from '../../errors.ts';
import { findRegister, type SeenRegister } from '../../registers/state/store.ts';
import { classify } from './classify.ts';
import { presentBlueprint, presentDefinition, presentState, presentVersion } from './present.ts';
import { loadSystemRegister } from './state.ts';

export interface SystemRegisterDeps {
  readonly db: Reader<RegisterSchema>;
  readonly registerId: string;
  readonly networkId: string;
}

const tags = ['System register'];
const config = { policy: 'RequireAuthenticated', rateLimit: 'Api' } as const;
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

function mountVersions(app: App, deps: SystemRegisterDeps): void {
  app.get(
    '/api/system-register/blueprints/:blueprintId/versions/:version',
    {
      config,
      schema: {
        operationId: 'getBlueprintVersion',
        tags,
        summary: 'One version, by number, ordinal or publication',
        params: params.extend({ version: z.string().max(64) }),
        response: jsonAnswer('The definition.'),
      },
    },
    async (request) => {
      const register = await getSystemRegister(deps);
      const { blueprintId: id, version: text } = request.params;
      const version = await getVersion(deps, register, id, versionKey(text));
      return presentDefinition(version, await definitionIn(deps, register, version));
    },
  );
  app.get(
    '/api/system-register/blueprints/:blueprintId/versions',
    {
      config,
      schema: {
        operationId: 'listBlueprintVersions',
        tags,
        summary: 'Versions of a blueprint, newest first',
        params,
        querystring: paging({ defaultSize: 100 }),
        response: jsonAnswer('The versions.'),
      },
    },
    async (request) => {
      const { registerNo } = await getSystemRegister(deps);
      const of = { registerNo, blueprintId: request.params.blueprintId };
      const versions = await listVersions(deps.db, of, pageWindow(request.query));
      if (versions.length === 0 && request.query.page === 1) throw refusal('BLUEPRINT_NOT_FOUND');
      return versions.map(presentVersion);
    },
  );
}

function mountClassification(app: App, deps: SystemRegisterDeps): void {
  app.post(
    '/api/system-register/blueprints/:blueprintId/classify-change',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'classifyBlueprintChange',
        tags,
        summary: 'The version that publishing a definition would give',
        params,
        body: z.strictObject({ newBlueprint: z.record(z.string(), z.unknown()) }),
        response: jsonAnswer('The classification.'),
      },
    },
    async (request) => {
      const register = await getSystemRegister(deps);
      const { blueprintId: id } = request.params;
      const version = await getVersion(deps, register, id, 'latest');
      const proposed = definitionOf(id, request.body.newBlueprint);
      const definition = await definitionIn(deps, register, version);
      return classify(deps.db, register, { version, definition }, proposed);
    },
  );
}

/** The system register and its blueprints, for every signed-in caller. */
export function mountSystemRegister(app: App, deps: SystemRegisterDeps): void {
  app.get(
    '/api/system-register',
    {
      config,
      schema: {
        operationId: 'getSystemRegister',
        tags,
        summary: 'The system register and whether it is ready',
        response: jsonAnswer('The system register.'),
      },
    },
    async () => presentState(await loadSystemRegister(deps.db, deps.registerId), deps),
  );
  app.get(
    '/api/system-register/blueprints',
    {
      config,
      schema: {
        operationId: 'listBlueprints',
        tags,
        summary: 'Blueprints of the system register',
        querystring: paging(),
        response: jsonAnswer('A page of blueprints.'),
      },
    },
    async (request) => {
      const { query } = request;
      const register = await findRegister(deps.db, deps.registerId);
      const { items, total } =
        register === undefined
          ? { items: [], total: 0 }
          : await listBlueprints(deps.db, register.registerNo, pageWindow(query));
      return page(items.map(presentBlueprint), query, total);
    },
  );
  app.get(
    '/api/system-register/blueprints/:blueprintId',
    {
      config,
      schema: {
        operationId: 'getBlueprint',
        tags,
        summary: 'The latest version of a blueprint',
        params,
        response: jsonAnswer('The definition.'),
      },
    },
    async (request) => {
      const register = await getSystemRegister(deps);
      const version = await getVersion(deps, register, request.params.blueprintId, 'latest');
      return presentDefinition(version, await definitionIn(deps, register, version));
    },
  );
  mountVersions(app, deps);
  mountClassification(app, deps);
}
