import { readFileSync } from 'node:fs';
import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Refused } from '#kit/audit/audit.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import { type ManualClock, manualClock } from '#kit/clock/clock.ts';
import { type Database, openDatabase } from '#kit/db/db.ts';
import { createIdempotency } from '#kit/db/idempotency.ts';
import { createDownloads } from '#kit/files/downloads.ts';
import { type App, createHttpServer, listenHttp } from '#kit/http/http.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { migrations } from '../database/migrations/list.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import { createPublicationIndex } from '../definitions/publications/follow.ts';
import { createCanRead } from '../definitions/publications/visibility.ts';
import { createDesignerMeter } from '../definitions/publishing/metrics.ts';
import { refusal } from '../errors.ts';
import { createDraftJudge, type DraftJudge } from '../evaluation/pool.ts';
import { createCompiledDefinitions } from '../execution/definitions.ts';
import { readChunk } from '../files/uploads/store.ts';
import { mountRoutes } from '../http.ts';
import { countOpenInstances } from '../instances/store.ts';
import { openTestChat } from './chat.ts';
import { openTestInstances } from './instances.ts';
import { openTestOperations } from './operations.ts';
import { type Answers, fakeRegisters, registerOf, type TestRegister } from './registers.ts';
import { createSealing } from './sealing.ts';
import { createTestWallets } from './wallets.ts';

const claims = {} as Caller['claims'];
const base = { tokenId: 't', issuedAtMs: 0, expiresAtMs: 0, canSignSystem: false, claims };
const person = { ...base, kind: 'user', tier: 'platform', clientId: 'first-party', scopes: [] } as const;

export const organizationId = '11111111-1111-4111-8111-111111111111';
export const otherOrganizationId = '22222222-2222-4222-8222-222222222222';

/** The token of the service itself, in the form in which the wallets of these tests take a subject. */
const ownToken = 'for:service-blueprint';

/** The callers of these tests, by token; a token is its own name. */
const callers: Readonly<Record<string, Caller>> = {
  admin: { ...person, subject: 'admin', platformUserId: 'ann', organizationId, roles: ['Administrator'] },
  designer: { ...person, subject: 'designer', platformUserId: 'dan', organizationId, roles: ['Designer'] },
  later: {
    ...person,
    subject: 'later',
    platformUserId: 'ann',
    organizationId: otherOrganizationId,
    roles: ['Administrator'],
    expiresAtMs: 1,
  },
  user: { ...person, subject: 'user', platformUserId: 'una', organizationId, roles: ['User'] },
  citizen: { ...person, tier: 'consumer', subject: 'citizen', platformUserId: 'cid', roles: [] },
  stranger: {
    ...person,
    subject: 'stranger',
    platformUserId: 'sam',
    organizationId: otherOrganizationId,
    roles: ['Administrator'],
  },
  system: {
    ...person,
    subject: 'system',
    platformUserId: 'sue',
    organizationId: SYSTEM_ORGANIZATION_ID,
    roles: ['SystemAdmin'],
  },
  [ownToken]: {
    ...base,
    expiresAtMs: Date.UTC(2030, 0),
    kind: 'service',
    tier: 'service',
    subject: 'own',
    clientId: 'service-blueprint',
    scopes: [],
    roles: [],
  },
  service: {
    ...base,
    kind: 'service',
    tier: 'service',
    subject: 's',
    clientId: 'service-x',
    scopes: [],
    roles: [],
  },
};

async function authenticate(token: string): Promise<Caller> {
  const caller = callers[token];
  if (caller === undefined) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
  return caller;
}

interface Schema {
  readonly properties: Record<string, object>;
  readonly required: string[];
}

export type Site = Record<string, unknown> & { actions: { readonly dataSchemas: Schema[] }[] };

/** The blueprint of a site permit, without its credentials, which no service issues. */
export function sitePermit(): Site {
  const url = new URL('../../core/blueprint/vectors/site-permit.json', import.meta.url);
  const site = JSON.parse(readFileSync(url, 'utf8'));
  for (const action of site.actions) {
    delete action.credentialRequirements;
    delete action.credentialIssuanceConfig;
  }
  delete site.actions[2].routes[0].outputMapping;
  return site;
}

/** The data schema of the first action. */
export function firstSchema(site: Site): Schema {
  const schema = site.actions[0]?.dataSchemas[0];
  if (schema === undefined) throw new RangeError('the first action has no schema');
  return schema;
}

interface Request {
  readonly token?: string;
  readonly body?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

async function callRoute(app: App, method: Method, path: string, request: Request) {
  const { token = 'admin', body, text = JSON.stringify(body), headers } = request;
  const hasBody = text !== undefined;
  const response = await app.inject({
    method,
    url: path,
    headers: {
      authorization: `Bearer ${token}`,
      ...(hasBody && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(hasBody && { payload: text }),
  });
  const isJson = /[/+]json/.test(String(response.headers['content-type']));
  // parsed JSON of any shape
  const parsed: ReturnType<typeof JSON.parse> = isJson ? response.json() : undefined;
  return {
    status: response.statusCode,
    body: parsed,
    headers: response.headers,
    bytes: response.rawPayload,
  };
}

export type World = Awaited<ReturnType<typeof startWorld>>;

interface Surroundings {
  readonly db: Database<BlueprintDatabase>;
  readonly runtime: ReturnType<typeof testRuntime>;
  readonly clock: ManualClock;
  readonly registers: Map<string, TestRegister>;
  readonly wallets: ReadonlyMap<string, string[]>;
  readonly answers: Answers;
  readonly judge: DraftJudge;
}

/** The parts of the service, over registers and wallets in memory. */
async function openParts({ db, runtime, clock, registers, wallets, answers, judge }: Surroundings) {
  const sealing = createSealing({
    registers,
    clock,
    findWorkflow: (...pin) => instances.definitions.findWorkflow(...pin),
  });
  const { ledger, routes } = fakeRegisters({ registers, answers, clock, sealing: sealing.client });
  const index = createPublicationIndex({ db, ledger });
  const instances = await openTestInstances({ db, index, ledger, runtime });
  const keys = createTestWallets();
  const ownWallets = {
    ...keys.client,
    listOwn: async (token: string) => wallets.get(token) ?? [],
    findOrganizationAddresses: async (id: string) => wallets.get(id) ?? [],
  };
  const operations = openTestOperations({
    db,
    clock,
    log: runtime.log,
    ledger,
    wallets: ownWallets,
    definitions: instances.definitions,
    authenticate,
    foldAll: async () => {
      for (const registerId of registers.keys()) await instances.projector.catchUpRegister(registerId);
    },
  });
  const chat = await openTestChat({ db, judge, runtime });
  const downloads = createDownloads({
    chunks: { read: (registerId, chunkId) => readChunk(db.read, { registerId, chunkId }) },
    telemetry: runtime.telemetry,
    refusal,
  });
  return {
    sealing,
    ledger,
    routes,
    index,
    instances,
    keys,
    wallets: ownWallets,
    operations,
    chat,
    downloads,
  };
}

type TestRuntime = ReturnType<typeof testRuntime>;

async function openStore(
  name: string,
  { log, telemetry }: TestRuntime,
): Promise<Database<BlueprintDatabase>> {
  const url = await testDatabase(name);
  return openDatabase<BlueprintDatabase>({ url, schema: 'blueprint', log, telemetry, migrations });
}

function openApp(runtime: TestRuntime): App {
  const app = createHttpServer({ runtime, title: 'test', bodyLimitBytes: 2 * 1024 * 1024 });
  authPlugin(app, { authenticate });
  return app;
}

/** The blueprint service on its own database, with registers and wallets in memory. */
export async function startWorld(name: string) {
  const clock = manualClock(Date.UTC(2026, 10, 21, 12));
  const runtime = testRuntime('service-blueprint', { clock });
  const { log, telemetry } = runtime;
  const db = await openStore(name, runtime);
  const registers = new Map<string, TestRegister>();
  const wallets = new Map<string, string[]>();
  const refused: Refused[] = [];
  /** Answers of the register service in place of its own. */
  const answers: Answers = {};
  const judge = createDraftJudge({ workers: 1, log, budgetMs: 10_000, credentials: false });
  const parts = await openParts({ db, runtime, clock, registers, wallets, answers, judge });
  const { index, ledger, instances, operations, chat } = parts;
  const app = openApp(runtime);
  mountRoutes(app, {
    clientId: 'service-blueprint',
    ...operations,
    authenticator: { authenticate },
    boundedWaitMs: 20_000,
    db,
    clock,
    idempotency: createIdempotency({ database: db, clock, log }),
    judge,
    index,
    ledger,
    registers: parts.routes,
    wallets: parts.wallets,
    ownWallets: parts.keys.own,
    stepWaitMs: 20_000,
    log,
    self: async () => ({ caller: await authenticate(ownToken), bearer: ownToken }),
    refusalLog: { count: (one) => void refused.push(one) },
    canRead: createCanRead({ registers: parts.routes, clock }),
    countOpenInstances: (publications) => countOpenInstances(db.read, publications, new Date(clock.nowMs())),
    ...instances,
    listOwn: async (token) => wallets.get(token) ?? [],
    downloads: parts.downloads,
    verifier: createVerifier(nodeEd25519()),
    fileQuotaBytes: 8 * 1024 * 1024,
    chatHub: chat.hub,
    meter: createDesignerMeter(telemetry),
    compiled: createCompiledDefinitions(),
    // Time passes only by waiting for events.
    nextRegisterEvent: async (timeoutMs) => clock.advance(timeoutMs),
  });

  return {
    db,
    clock,
    index,
    chat,
    projector: instances.projector,
    definitions: instances.definitions,
    ignored: instances.ignored,
    keys: parts.keys,
    sealing: parts.sealing,
    ...operations,
    telemetry,
    log,
    refused,
    answers,
    wallets,
    registers,
    addRegister: (registerId: string, register: Partial<TestRegister> = {}) =>
      void registers.set(registerId, registerOf(register)),
    call: (method: Method, path: string, request: Request = {}) => callRoute(app, method, path, request),
    /** Port of a listener on this host. */
    listen: () => listenHttp(app, { host: '127.0.0.1', port: 0 }),
    async stop() {
      await operations.runner.stop();
      await instances.hub.stop();
      await chat.hub.stop();
      await app.close();
      await judge.close();
      await db.close();
    },
  };
}
