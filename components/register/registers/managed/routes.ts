import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { identifier } from '#core/identity/identifier.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, addRoute, bearerOf, json } from '#kit/http/http.ts';
import { ofPossession, ofSubmission, ofWallets, refusal, refusals } from '../../errors.ts';
import type { DeleteDeps } from '../lifecycle/delete.ts';
import { countRegisters, type Register } from '../state/store.ts';
import { collect, missingOf } from './attestations.ts';
import { type ChangeManaged, changeBody } from './changes.ts';
import { DELETION_POLICIES, removeManaged } from './remove.ts';
import { mountSandboxes, type SandboxDeps } from './sandbox.ts';
import {
  missingSchema,
  organizationCountSchema,
  releasedSchema,
  statusSchema,
  submittedSchema,
  validationSchema,
} from './schemas.ts';
import { attestationBody, specBody, uidText } from './spec.ts';
import { type Found, getFound, presentDeletion, readStatus, type StatusDeps } from './status.ts';
import { findManager, hasBegun, type Managed } from './store.ts';
import { upsertRegister } from './upsert.ts';
import { setValidation, VALIDATION_STATES, type ValidationDeps } from './validation.ts';

export interface ManagedDeps extends SandboxDeps, StatusDeps, DeleteDeps, ValidationDeps {
  readonly wallets: SandboxDeps['wallets'];
  readonly validators: StatusDeps['validators'];
  readonly idempotency: Idempotency;
  readonly change: ChangeManaged;
}

const key = z.string().regex(/^(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/);
const params = z.object({ key });
const route = { tag: 'Operator', policy: 'RequireOperator', rateLimit: 'Api' } as const;
const ofStatus = [...refusals('REGISTER_NOT_FOUND', 'REGISTER_NOT_READY', 'PERSON_REQUIRED'), ...ofWallets];

/** `resource` of a route: the resource or register of a key. */
function foundByKey(deps: ManagedDeps) {
  return ({ params: named }: { readonly params: { readonly key: string } }): Promise<Found> =>
    getFound(deps, named.key);
}

/** A register that exists and accepts changes. */
async function getChangeable(deps: ManagedDeps, name: string): Promise<Register> {
  const { known } = await getFound(deps, name);
  if (known === undefined || known.register.status === 'Checking')
    throw refusal('REGISTER_NOT_READY', { retryAfterSeconds: 1 });
  if (known.deletion !== undefined) throw refusal('REGISTER_DELETED');
  if (known.register.status === 'Halted') throw refusal('REGISTER_HALTED');
  return known.register;
}

const specExample = {
  title: 'Invoices',
  organizationId: '8f4d9a30-52a5-4d0c-8f6f-0f0b7ac2a001',
  validators: ['validator-0', 'validator-1', 'validator-2', 'validator-3'],
};

function mountUpsert(app: App, deps: ManagedDeps): void {
  const upsert = {
    ...route,
    answers: { 200: json('The register.', statusSchema) },
    refusals: [
      ...ofStatus,
      ...refusals('REGISTER_BOUND', 'REGISTER_DELETED', 'REGISTER_OF_ANOTHER_ORGANIZATION', 'UID_BOUND'),
      ...refusals('IMMUTABLE_FIELD', 'INVALID_POLICY', 'MECHANISM_NOT_SUPPORTED', 'OWNER_WALLET_REQUIRED'),
      ...refusals('ATTESTATION_INVALID', 'VALIDATOR_SET_UNAVAILABLE', 'VALIDATOR_UNAVAILABLE'),
      ...refusals('REGISTER_EXISTS', 'IDEMPOTENCY_IN_PROGRESS', 'VAL_STRUCT_012'),
    ],
  } as const;

  addRoute(app, {
    ...upsert,
    method: 'PUT',
    path: '/api/internal/registers/:uid',
    operationId: 'upsertManagedRegister',
    summary: 'Create the register of a custom resource, or continue its creation',
    params: z.object({ uid: uidText }),
    body: { schema: specBody, example: specExample },
    handle: async ({ caller, params: { uid }, body, request }) => {
      const subject = { caller, token: bearerOf(request) };
      const registerId = await upsertRegister(deps, subject, uid, body);
      return readStatus(deps, subject, await getFound(deps, registerId));
    },
  });

  addRoute(app, {
    ...upsert,
    method: 'POST',
    path: '/api/internal/registers',
    operationId: 'createManagedRegister',
    summary: 'The same, with the UID in the body',
    body: {
      schema: specBody.extend({ uid: uidText }),
      example: { uid: 'b3a1f6de-6c0f-4a5e-9d3c-2f1f0c9d7e11', ...specExample },
    },
    handle: async ({ caller, body: { uid, ...spec }, request }) => {
      const subject = { caller, token: bearerOf(request) };
      const registerId = await upsertRegister(deps, subject, uid, spec);
      return readStatus(deps, subject, await getFound(deps, registerId));
    },
  });
}

function mountOne(app: App, deps: ManagedDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/internal/registers/:key',
    operationId: 'getManagedRegister',
    summary: 'The complete status of a register',
    params,
    resource: foundByKey(deps),
    answers: { 200: json('The register.', statusSchema) },
    refusals: ofStatus,
    handle: ({ caller, resource, request }) =>
      readStatus(deps, { caller, token: bearerOf(request) }, resource),
  });

  addRoute(app, {
    ...route,
    method: 'DELETE',
    path: '/api/internal/registers/:key',
    operationId: 'releaseManagedRegister',
    summary: 'Release the register of a custom resource, or delete it',
    params,
    query: z.object({ policy: z.enum(DELETION_POLICIES) }),
    answers: { 200: json('The deletion.', releasedSchema) },
    refusals: [
      ...refusals('REGISTER_NOT_FOUND', 'REGISTER_NOT_READY'),
      ...refusals('SYSTEM_REGISTER_PROTECTED', 'DELETE_NOT_ATTESTED'),
      ...ofWallets,
    ],
    handle: async ({ caller, params: named, query, request }) => {
      const subject = { caller, token: bearerOf(request) };
      const found = await removeManaged(deps, subject, named.key, query.policy);
      const registerId = found?.known?.register.registerId ?? found?.managed?.registerId ?? null;
      return { registerId, deletion: presentDeletion(found?.known?.deletion) };
    },
  });
}

function mountCount(app: App, deps: ManagedDeps): void {
  addRoute(app, {
    ...route,
    method: 'GET',
    path: '/api/internal/organizations/:organizationId/registers/count',
    operationId: 'countOrganizationRegisters',
    summary: 'Number of registers that an organisation sees',
    params: z.object({ organizationId: identifier }),
    answers: { 200: json('The count.', organizationCountSchema) },
    refusals: [],
    handle: async ({ params: { organizationId } }) => {
      const groups = await countRegisters(deps.database.read, { all: false, organizationId });
      return { organizationId, count: groups.reduce((sum, { count }) => sum + count, 0) };
    },
  });
}

function mountChanges(app: App, deps: ManagedDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/internal/registers/:key/changes',
    operationId: 'changeManagedRegister',
    summary: 'Change a register as a member of its roster',
    params,
    body: { schema: changeBody, example: { change: 'addValidator', validatorId: 'validator-4' } },
    resource: ({ params: named }) => getChangeable(deps, named.key),
    idempotency: deps.idempotency,
    answers: { 202: json('The change was submitted.', submittedSchema) },
    refusals: [
      ...refusals('REGISTER_DELETED', 'REGISTER_HALTED', 'CHANGE_OUTSTANDING', 'NOT_ON_ROSTER'),
      ...refusals('INVALID_POLICY', 'MECHANISM_NOT_SUPPORTED', 'TRANSITION_MODE_REQUIRED'),
      ...refusals('POLICY_VERSION_CONFLICT', 'POLICY_UPDATE_REJECTED', 'DEV_MODE_ALREADY_DISABLED'),
      ...ofPossession,
      ...refusals('PROPOSAL_NOT_FOUND', 'PROPOSAL_CLOSED'),
      ...ofSubmission,
    ],
    handle: ({ caller, body, resource: register, request }) =>
      deps.change({ register, subject: { caller, token: bearerOf(request) } }, body),
  });

  addRoute(app, {
    ...route,
    method: 'PUT',
    path: '/api/internal/registers/:key/validation',
    operationId: 'updateManagedRegisterValidation',
    summary: 'Start, pause or stop a register at all its validators',
    params,
    body: {
      schema: z.strictObject({ state: z.enum(VALIDATION_STATES) }),
      example: { state: 'Paused' },
    },
    resource: foundByKey(deps),
    answers: { 200: json('The state of validation.', validationSchema) },
    refusals: [
      ...refusals('REGISTER_NOT_FOUND', 'REGISTER_NOT_READY', 'REGISTER_HALTED'),
      ...refusals('VALIDATOR_UNAVAILABLE', 'VALIDATION_STOPPED', 'BAD_GATEWAY'),
    ],
    handle: ({ body, resource: { known } }) => {
      if (known === undefined || known.deletion !== undefined) throw refusal('REGISTER_NOT_READY');
      return setValidation(deps, known.register, body.state);
    },
  });
}

/** The draft of a register that lacks attestations. */
async function getOpenDraft(deps: ManagedDeps, text: string): Promise<Managed> {
  const registerId = findRegisterId(text);
  const managed = registerId === undefined ? undefined : await findManager(deps.database.read, registerId);
  if (managed?.open === undefined || (await hasBegun(deps.database.read, managed.registerId)))
    throw refusal('REGISTRATION_NOT_FOUND');
  if (managed.open.expiresAt.getTime() <= deps.clock.nowMs()) throw refusal('REGISTRATION_EXPIRED');
  return managed;
}

const attestBody = z.strictObject({
  attestations: z.array(attestationBody).max(25).default([]),
  autoAttest: z.boolean().default(false).describe('Sign with the wallets of the caller.'),
});

function assertAttests({ attestations, autoAttest }: z.output<typeof attestBody>): void {
  if (attestations.length > 0 || autoAttest) return;
  const message = 'The request must contain attestations or autoAttest: true.';
  throw new AppError('invalid', 'INVALID_REQUEST', message);
}

/** Owners and admins whose keys the operator does not hold attest on these routes. */
function mountAttestations(app: App, deps: ManagedDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/registers/:registerId/attestations',
    operationId: 'attestRegister',
    tag: 'Registers',
    summary: 'Attest for the draft register of a custom resource',
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    params: z.object({ registerId: z.string() }),
    body: { schema: attestBody, example: { autoAttest: true } },
    resource: async ({ params: named, body }) => {
      assertAttests(body);
      return getOpenDraft(deps, named.registerId);
    },
    answers: { 200: json('Attestations that are still missing.', missingSchema) },
    refusals: [
      ...refusals('REGISTRATION_NOT_FOUND', 'REGISTRATION_EXPIRED', 'ATTESTATION_INVALID'),
      ...refusals('SENDER_NOT_AUTHORIZED', 'PERSON_REQUIRED'),
      ...ofWallets,
    ],
    handle: async ({ body, resource: managed, request }) => {
      const { attestations: given, autoAttest } = body;
      const token = autoAttest ? bearerOf(request) : undefined;
      const after = await collect(deps, managed, { given, token });
      const missing = missingOf(after);
      if (autoAttest && missing.length === missingOf(managed).length) throw refusal('SENDER_NOT_AUTHORIZED');
      const named = missing.map(({ walletAddress, data }) => ({ walletAddress, role: data.role }));
      return { registerId: after.registerId, missing: named };
    },
  });
}

/** Registers of custom resources, for the operator only, and sandboxes; the gateway routes to none of them. */
export function mountManaged(app: App, deps: ManagedDeps): void {
  mountUpsert(app, deps);
  mountOne(app, deps);
  mountCount(app, deps);
  mountChanges(app, deps);
  mountAttestations(app, deps);
  mountSandboxes(app, deps);
}
