import { createVerifier, nodeEd25519 } from '#core/crypto/verify.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { applyControl } from '#core/ledger/governance/apply.ts';
import { controlTransaction } from '#core/ledger/governance/control.ts';
import { logLeaf } from '#core/ledger/log.ts';
import { parseRecord } from '#core/ledger/record.ts';
import { authPlugin } from '#kit/auth/auth.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { createVerifyPool } from '#kit/crypto/verify-pool.ts';
import { openDatabase } from '#kit/db/db.ts';
import { type App, createHttpServer } from '#kit/http/http.ts';
import { openHub } from '#kit/hub/hub.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import { testDatabase } from '#kit/testing/database.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { migrations } from '../database/migrations/list.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { mountRoutes } from '../http.ts';
import type { DocketBundle } from '../ledger/dockets/docket.ts';
import { loadState } from '../ledger/writing/chain.ts';
import { assembleLedger } from '../ledger.ts';
import { announce } from '../registers/directory/store.ts';
import { registerHub } from '../registers/hub/hub.ts';
import { buildDocket, type TestMember } from './build-docket.ts';
import { fakeValidators } from './fake-validators.ts';
import { fakeWallets } from './fake-wallets.ts';
import { testKey } from './keys.ts';
import { transaction } from './sealed.ts';

const claims = {} as Caller['claims'];
const base = { tokenId: 't', issuedAtMs: 0, expiresAtMs: 0, canSignSystem: false, claims };
const person = { ...base, kind: 'user', tier: 'platform', clientId: 'first-party', scopes: [] } as const;
/** A service token without scopes. */
export const service = { ...base, subject: 'service', kind: 'service', tier: 'service', roles: [] } as const;

/** The context of a gRPC call by a service. */
export function contextOf(clientId: string, scopes: readonly string[] = ['dockets:write']): RpcContext {
  const caller: Caller = { ...service, clientId, scopes };
  const peer = { clientId, spiffeId: `spiffe://test/service/${clientId}` };
  return { peer, caller, signal: new AbortController().signal };
}

export const organizationId = '11111111-1111-4111-8111-111111111111';

/** The callers of these tests, by token; a token is its own name. */
const callers: Readonly<Record<string, Caller>> = {
  admin: { ...person, subject: 'admin', platformUserId: 'admin', organizationId, roles: ['Administrator'] },
  user: { ...person, subject: 'user', platformUserId: 'user', organizationId, roles: ['User'] },
  claimant: {
    ...person,
    subject: 'claimant',
    organizationId,
    roles: ['Administrator'],
    walletAddress: testKey(25).walletAddress,
  },
  stranger: {
    ...person,
    subject: 'stranger',
    organizationId: '22222222-2222-4222-8222-222222222222',
    roles: ['Administrator'],
  },
  outsider: {
    ...person,
    subject: 'outsider',
    platformUserId: 'outsider',
    organizationId: '22222222-2222-4222-8222-222222222222',
    roles: ['Administrator'],
  },
  second: {
    ...person,
    subject: 'second',
    platformUserId: 'second',
    organizationId,
    roles: ['Administrator'],
  },
  third: { ...person, subject: 'third', platformUserId: 'third', organizationId, roles: ['Administrator'] },
  system: { ...person, subject: 'system', organizationId: SYSTEM_ORGANIZATION_ID, roles: ['SystemAdmin'] },
  validator: { ...service, subject: 'v0', clientId: 'validator-0', scopes: ['dockets:write'] },
  operator: { ...service, subject: 'o', clientId: 'service-operator', scopes: [] },
  blueprint: { ...service, subject: 'b', clientId: 'service-blueprint', scopes: [] },
};

interface TestAnswer {
  readonly status: number;
  /** parsed JSON of any shape */
  readonly body: ReturnType<typeof JSON.parse>;
  readonly text: string;
  readonly headers: Readonly<Record<string, unknown>>;
}

export interface TestRequest {
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface TestRegisterOptions {
  readonly members?: number;
  /** Validators that hold keys and have not announced themselves. */
  readonly spare?: number;
  readonly clock?: Clock;
  /** Announced validators required to create the system register; it is not created when absent. */
  readonly systemRegister?: number;
  /** An empty database; one of the test run's server when absent. */
  readonly databaseUrl?: string;
  /** Transactions that fill a key segment. */
  readonly segmentTransactions?: number;
  /** Called with the subject of every wake signal. */
  readonly onWake?: (subject: string) => void;
  readonly publicSyncHealth?: boolean;
}

export type TestRegister = Awaited<ReturnType<typeof startTestRegister>>;

export const testSettings = {
  CHANCERY_PENDING_TTL_SECONDS: 300,
  CHANCERY_VALIDATOR_FRESH_SECONDS: 3_600,
  CHANCERY_MAX_OPEN_REGISTRATIONS: 20,
  CHANCERY_SEAL_ADMINISTRATOR_ONLY: false,
  CHANCERY_SYSTEM_REGISTER_NETWORK: 'default',
  CHANCERY_SYSTEM_REGISTER_VALIDATORS: 0,
  CHANCERY_PUBLIC_SYNC_HEALTH: true,
};

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

async function callRoute(app: App, method: Method, path: string, request: TestRequest): Promise<TestAnswer> {
  const response = await app.inject({
    method,
    url: path,
    headers: {
      ...(request.token !== undefined && { authorization: `Bearer ${request.token}` }),
      ...(request.body !== undefined && { 'content-type': 'application/json' }),
      ...request.headers,
    },
    ...(request.body !== undefined && { payload: JSON.stringify(request.body) }),
  });
  const json = /[/+]json/.test(String(response.headers['content-type']));
  return {
    status: response.statusCode,
    body: json ? response.json() : undefined,
    text: response.body,
    headers: response.headers,
  };
}

/** The ledger with its routes, on its own database. */
async function openTestLedger(name: string, options: TestRegisterOptions) {
  const { members: size = 1, spare = 0 } = options;
  const allMembers: TestMember[] = Array.from({ length: size + spare }, (_, index) => ({
    validatorId: `validator-${index}`,
    key: testKey(100 + index),
  }));
  const members = allMembers.slice(0, size);
  const runtime = testRuntime(
    'service-register',
    options.clock === undefined ? {} : { clock: options.clock },
  );
  const { log, telemetry } = runtime;
  const url = options.databaseUrl ?? (await testDatabase(name));
  const database = await openDatabase<RegisterSchema>({
    url,
    schema: 'register',
    log,
    telemetry,
    migrations,
  });
  const wallets = fakeWallets();
  const validators = fakeValidators(allMembers);
  const pool = createVerifyPool({ workers: 0 });
  const wakes = new Set<() => void>();
  const ledger = assembleLedger({
    database,
    wallets,
    validators,
    verifier: createVerifier(nodeEd25519()),
    pool,
    runtime,
    bus: {
      publish: (subject) => {
        options.onWake?.(subject);
        if (subject === SUBJECTS.registerEvents) for (const wake of wakes) wake();
      },
    },
    settings: {
      ...testSettings,
      CHANCERY_SYSTEM_REGISTER_VALIDATORS: options.systemRegister ?? 0,
      CHANCERY_PUBLIC_SYNC_HEALTH: options.publicSyncHealth ?? true,
    },
    segmentTransactions: options.segmentTransactions,
  });
  const app = createHttpServer({ runtime, title: 'test' });
  authPlugin(app, {
    async authenticate(token) {
      const caller = callers[token];
      if (caller === undefined) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'unknown token');
      return caller;
    },
  });
  const hub = await openHub(registerHub(database.read), {
    runtime,
    bus: {
      subscribe: (_subject, wake) => {
        wakes.add(wake);
        return () => wakes.delete(wake);
      },
    },
    authenticator: { assertCurrent: () => undefined },
  });
  mountRoutes(app, ledger.deps, hub);
  const introduce = ({ validatorId, key }: TestMember) => {
    const { publicKey, algorithm } = key;
    const entry = { validatorId, publicKey, algorithm, endpoint: '127.0.0.1:1', version: '1', features: [] };
    const announcedAt = new Date(runtime.clock.nowMs());
    return database.transact((tx) => announce(tx, { ...entry, announcedAt }));
  };
  for (const member of members) await introduce(member);
  return { introduce, members, runtime, database, wallets, validators, pool, ledger, app, hub };
}

/** The register service on its own database, with wallets and validators in memory. */
export async function startTestRegister(name: string, options: TestRegisterOptions = {}) {
  const opened = await openTestLedger(name, options);
  const { runtime, database, wallets, validators, members, pool, ledger, app, hub } = opened;
  const verifier = createVerifier(nodeEd25519());
  const loading = { database, verifier, clock: runtime.clock };
  const call = (method: Method, path: string, request: TestRequest = {}) =>
    callRoute(app, method, path, request);

  async function state(registerId: string) {
    const found = await loadState(loading, registerId);
    if (found === undefined) throw new Error('no such register');
    return found;
  }

  /** The docket that would seal the pending transactions, not stored yet. */
  async function propose(registerId: string, count = 1000): Promise<DocketBundle> {
    const found = await state(registerId);
    return buildDocket(found, validators.take(registerId, count), setOf(found.members));
  }

  /** Consecutive dockets after the stored ones, each with one transaction, not stored yet. */
  async function proposeMore(registerId: string, count: number): Promise<DocketBundle[]> {
    const stored = await state(registerId);
    const frontier = stored.frontier.clone();
    let { height, head } = stored;
    return Array.from({ length: count }, () => {
      const sealed = transaction({ registerId, payload: { n: height } });
      const bundle = buildDocket({ ...stored, height, head, frontier }, [sealed], members);
      frontier.append(logLeaf(bundle.header));
      [height, head] = [height + 1, bundle.header];
      return bundle;
    });
  }

  /** The members of a set with their keys. */
  function setOf(set: readonly { readonly validatorId: string }[]): TestMember[] {
    return set.map(({ validatorId }) => {
      const member = validators.members.find((one) => one.validatorId === validatorId);
      if (member === undefined) throw new Error(`no test key of ${validatorId}`);
      return member;
    });
  }

  validators.judge = async ({ registerId, sealed }) => {
    const record = parseRecord(sealed.record);
    const found = await loadState(loading, registerId);
    if (found?.rules === undefined || record.type !== 'Control') return [];
    const timestamp = formatLedgerTimestamp(runtime.clock.nowMicros());
    const context = { docketNumber: found.height, timestamp, verifier };
    const applied = applyControl(found.rules, controlTransaction(record, sealed.payload), context);
    return 'violations' in applied ? applied.violations : [];
  };

  async function seal(registerId: string, count = 1000): Promise<DocketBundle> {
    const bundle = await propose(registerId, count);
    const result = await ledger.writeDocket(bundle);
    if (result.outcome !== 'stored') throw new Error(JSON.stringify(result));
    return bundle;
  }

  validators.onSeal = async (registerId) => (await seal(registerId)).header.docketNumber;

  /** A register that is online, owned by `admin` with the key of byte 1. */
  async function createRegister(title = 'Loans', overrides: object = {}): Promise<string> {
    const owner = testKey(1);
    wallets.own('admin', owner);
    const begun = await call('POST', '/api/registers/initiate', {
      token: 'admin',
      body: { title, ...overrides },
    });
    const { registerId, nonce } = begun.body;
    const body = { registerId, nonce, autoAttest: true };
    const done = await call('POST', '/api/registers/finalize', { token: 'admin', body });
    if (done.status !== 200) throw new Error(done.text);
    await waitFor(() => validators.pooled(registerId).length > 0, { what: 'the genesis submission' });
    await seal(registerId);
    return registerId;
  }

  return {
    ...opened,
    verifier,
    call,
    state,
    propose,
    proposeMore,
    seal,
    createRegister,
    async stop() {
      await hub.stop();
      await ledger.stop();
      await app.close();
      await pool.close();
      await database.close();
    },
  };
}
