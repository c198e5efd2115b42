import { z } from 'zod';
import { isAppError } from '#core/errors/errors.ts';
import type { CryptoPolicy } from '#core/ledger/control-record.ts';
import { TRANSITION_MODES } from '#core/ledger/governance/operation.ts';
import { isDefaultPolicy, type RegisterPolicy } from '#core/ledger/policy.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  addRoute,
  bearerOf,
  json,
  type PageQuery,
  page,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { ofSubmission, ofVisibleRegister, ofWritableRegister, refusal, refusals } from '../../errors.ts';
import { writableRegister } from '../../registers/state/access.ts';
import type { Register } from '../../registers/state/store.ts';
import { reasonText } from '../../registers/state/texts.ts';
import { submittedApproval, word } from '../proposals/operation.ts';
import { presentTime } from '../proposals/present.ts';
import { visibleRules } from '../rules/load.ts';
import type { PolicyKind, PolicyVersion } from '../rules/store.ts';
import { type ChangeDeps, disableDevMode, updateCryptoPolicy, updatePolicy } from './change.ts';
import {
  cryptoPolicySchema,
  cryptoPolicyVersionsSchema,
  policySchema,
  policyVersionsSchema,
  submittedModeSchema,
  submittedPolicySchema,
} from './schemas.ts';
import { listPolicyVersions } from './store.ts';

export interface PolicyDeps extends ChangeDeps {
  readonly idempotency: Idempotency;
}

const registerParams = z.object({ registerId: z.string() });
const changedMembers = z.record(z.string(), z.unknown());

const updateBody = z.object({
  policy: changedMembers.describe('The next policy; members left out stay unchanged, null removes one.'),
  updatedBy: z.string().min(1).max(255).describe('Your own DID on the roster.'),
  transitionMode: word(TRANSITION_MODES).optional().describe('Required from public to consent.'),
  justification: reasonText.optional(),
  proposedAt: z.string().max(64).optional(),
  approvals: z.array(submittedApproval).max(50).optional(),
});

const cryptoBody = z.object({
  cryptoPolicy: changedMembers,
  updatedBy: z.string().min(1).max(255).optional(),
  justification: reasonText.optional(),
  proposedAt: z.string().max(64).optional(),
  approvals: z.array(submittedApproval).max(50).optional(),
});

/** Facts of a version of either policy. */
function presentFacts(row: PolicyVersion) {
  return {
    txId: row.txId,
    docketNumber: row.docketNumber,
    effectiveFromDocket: row.docketNumber === 0 ? 0 : row.docketNumber + 1,
    updatedAt: presentTime(row.updatedAt),
    updatedBy: row.updatedBy ?? null,
  };
}

function presentPolicyVersion(row: PolicyVersion) {
  const policy: RegisterPolicy = JSON.parse(row.document);
  return { version: row.version, policy, ...presentFacts(row) };
}

function presentCryptoVersion(row: PolicyVersion) {
  const cryptoPolicy: CryptoPolicy = JSON.parse(row.document);
  return { version: row.version, cryptoPolicy, ...presentFacts(row) };
}

/** A page of versions of a policy, under both member names in use by clients. */
async function versionsPage<T>(
  { database }: PolicyDeps,
  { registerNo, registerId }: Register,
  query: PageQuery,
  { kind, present }: { readonly kind: PolicyKind; readonly present: (row: PolicyVersion) => T },
) {
  const { items, total } = await listPolicyVersions(database.read, { registerNo, kind }, pageWindow(query));
  const versions = items.map(present);
  return { registerId, versions, ...page(versions, query, total) };
}

const common = { tag: 'Policy', params: registerParams } as const;
const ofRules = [...ofVisibleRegister, ...refusals('REGISTER_NOT_READY')];

function mountPolicyReads(app: App, deps: PolicyDeps): void {
  const read = {
    ...common,
    method: 'GET',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    refusals: ofRules,
    resource: visibleRules(deps),
  } as const;
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/policy',
    operationId: 'getRegisterPolicy',
    summary: 'The policy in force',
    answers: {
      200: json(
        'The policy.',
        z.object({
          registerId: z.string(),
          policy: policySchema,
          isDefault: z.boolean().describe('Whether it is the policy of a register created without one.'),
        }),
      ),
    },
    handle: ({ resource: { register, rules } }) => {
      const { policy } = rules;
      return { registerId: register.registerId, policy, isDefault: isDefaultPolicy(policy) };
    },
  });
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/policy/history',
    operationId: 'listRegisterPolicyVersions',
    summary: 'Versions, newest first',
    query: paging(),
    answers: { 200: json('A page of versions.', policyVersionsSchema) },
    handle: ({ resource: { register }, query }) =>
      versionsPage(deps, register, query, { kind: 'policy', present: presentPolicyVersion }),
  });
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/crypto-policy',
    operationId: 'getRegisterCryptoPolicy',
    summary: 'The crypto policy in force',
    answers: {
      200: json('The crypto policy.', z.object({ registerId: z.string(), cryptoPolicy: cryptoPolicySchema })),
    },
    handle: ({ resource: { register, rules } }) => ({
      registerId: register.registerId,
      cryptoPolicy: rules.cryptoPolicy,
    }),
  });
  addRoute(app, {
    ...read,
    path: '/api/registers/:registerId/crypto-policy/history',
    operationId: 'listRegisterCryptoPolicyVersions',
    summary: 'Versions, newest first',
    query: paging(),
    answers: { 200: json('A page of versions.', cryptoPolicyVersionsSchema) },
    handle: ({ resource: { register }, query }) =>
      versionsPage(deps, register, query, { kind: 'crypto', present: presentCryptoVersion }),
  });
}

const submitted = json('The transaction was submitted.', submittedPolicySchema);
const ofVersions = [
  ...ofWritableRegister,
  ...ofSubmission,
  ...refusals('NOT_ON_ROSTER', 'POLICY_VERSION_CONFLICT', 'INVALID_POLICY'),
];

function mountUpdates(app: App, deps: PolicyDeps): void {
  const update = {
    ...common,
    method: 'POST',
    policy: 'CanManageRegisters',
    rateLimit: 'Strict',
    resource: writableRegister(() => deps.database.read),
  } as const;
  addRoute(app, {
    ...update,
    path: '/api/registers/:registerId/policy/update',
    operationId: 'proposeRegisterPolicy',
    summary: 'Propose the next policy',
    body: {
      schema: updateBody,
      example: {
        policy: { governance: { quorumFormula: 'supermajority' } },
        updatedBy: 'did:platform:w:w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
        justification: 'Two thirds must agree',
      },
    },
    idempotency: deps.idempotency,
    answers: { 202: submitted },
    refusals: [...ofVersions, ...refusals('TRANSITION_MODE_REQUIRED', 'MECHANISM_NOT_SUPPORTED')],
    handle: ({ caller, body, resource: register, request }) =>
      updatePolicy(deps, { register, subject: { caller, token: bearerOf(request) } }, body),
  });
  addRoute(app, {
    ...update,
    path: '/api/registers/:registerId/governance/crypto-policy',
    operationId: 'proposeRegisterCryptoPolicy',
    summary: 'Propose the next crypto policy',
    body: {
      schema: cryptoBody,
      example: { cryptoPolicy: { acceptedSignatureAlgorithms: ['ED25519', 'NISTP256'] } },
    },
    idempotency: deps.idempotency,
    answers: { 202: submitted },
    refusals: ofVersions,
    handle: ({ caller, body, resource: register, request }) =>
      updateCryptoPolicy(deps, { register, subject: { caller, token: bearerOf(request) } }, body),
  });
  addRoute(app, {
    ...update,
    path: '/api/registers/:registerId/disable-dev-mode',
    operationId: 'disableDevelopmentMode',
    summary: 'Turn development mode off permanently',
    answers: { 200: json('The transaction was submitted.', submittedModeSchema) },
    refusals: [
      ...ofWritableRegister,
      ...ofSubmission,
      ...refusals('DEV_MODE_ALREADY_DISABLED', 'POLICY_UPDATE_REJECTED', 'VALIDATORS_UNREACHABLE'),
    ],
    handle: ({ resource: register }) =>
      disableDevMode(deps, register).catch((error: unknown) => {
        // These routes answer 502 when no validator can be reached.
        if (isAppError(error) && error.code === 'VALIDATOR_UNAVAILABLE')
          throw refusal('VALIDATORS_UNREACHABLE', { cause: error });
        throw error;
      }),
  });
}

/** Policies of a register: in force, history, next version. */
export function mountPolicy(app: App, deps: PolicyDeps): void {
  mountPolicyReads(app, deps);
  mountUpdates(app, deps);
}
