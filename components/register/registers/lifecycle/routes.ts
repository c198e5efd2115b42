import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { decide } from '#core/identity/policies.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  addRoute,
  answer,
  bearerOf,
  empty,
  json,
  page,
  pageSchema,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import type { Validators } from '../../clients/validators.ts';
import { storable } from '../../database/text.ts';
import {
  ofSubmission,
  ofVisibleRegister,
  ofWallets,
  ofWritableRegister,
  refusal,
  refusals,
} from '../../errors.ts';
import { type FinalizeDeps, finalize } from '../creation/finalize.ts';
import { type InitiateDeps, initiate } from '../creation/initiate.ts';
import { begunSchema, registrationSchema } from '../creation/schemas.ts';
import { getWritableRegister, scopeOf, visibleRegister } from '../state/access.ts';
import { countRegisters, listRegisters } from '../state/store.ts';
import {
  descriptionText,
  knownDescription,
  knownMetadata,
  knownTitle,
  metadataMap,
  titleText,
} from '../state/texts.ts';
import { type DeleteDeps, deleteRegister } from './delete.ts';
import { presentRegister } from './present.ts';
import { registerSchema } from './schemas.ts';
import { type UpdateDeps, updateRegister } from './update.ts';

export interface RegistersDeps extends InitiateDeps, FinalizeDeps, UpdateDeps, DeleteDeps {
  readonly validators: Pick<Validators, 'submit' | 'act'>;
  readonly idempotency: Idempotency;
}

const address = z.string().refine(isWalletAddress, 'expected a wallet address');

/** A wallet of the wallet service by id or address, or the address of an external key. */
const member = z.object({
  walletAddress: address.optional(),
  walletId: storable(64).min(1).optional(),
  userId: storable(64).optional(),
});
const isNamed = (one: z.output<typeof member>) =>
  (one.walletAddress === undefined) !== (one.walletId === undefined);
const onlyOne = 'exactly one of walletAddress and walletId';

const initiateBody = z.object({
  title: titleText,
  description: descriptionText.optional(),
  purpose: z.enum(['General', 'System']).default('General'),
  devMode: z.boolean().default(false),
  advertise: z.boolean().default(false),
  metadata: metadataMap.default({}),
  policy: z.record(z.string(), z.unknown()).optional(),
  owners: z.array(member.refine(isNamed, onlyOne)).max(25).optional(),
  additionalAdmins: z
    .array(
      member
        .extend({ role: z.enum(['Admin', 'Auditor', 'Designer']).default('Admin') })
        .refine(isNamed, onlyOne),
    )
    .max(24)
    .optional(),
  registerId: z
    .string()
    .regex(/^[0-9a-fA-F]{32}$/)
    .optional(),
});

const finalizeBody = z.object({
  registerId: z.string().min(1).max(64),
  nonce: z.string().min(1).max(256),
  signedAttestations: z
    .array(
      z.object({
        attestationData: z.looseObject({ role: z.string(), subject: z.string() }),
        publicKey: z.string().min(1).max(1024),
        signature: z.string().min(1).max(1024),
        algorithm: z.string().min(1).max(32),
      }),
    )
    .max(25)
    .default([]),
  autoAttest: z.boolean().default(false),
});

const listQuery = paging().extend({
  purpose: z.enum(['General', 'System']).optional(),
  status: z.enum(['Checking', 'Online', 'Recovery', 'Offline', 'Halted']).optional(),
  includeSandbox: z.stringbool().default(false),
});

/** Members that cannot be set: the ledger decides them, or they are fixed at creation. */
const immutable = ['id', 'registerId', 'status', 'purpose', 'devMode', 'height', 'createdAt'] as const;

const updateBody = z.looseObject({
  title: knownTitle.optional(),
  description: knownDescription.optional(),
  metadata: knownMetadata.optional(),
  advertise: z.boolean().optional(),
});

const registerParams = z.object({ registerId: z.string() });
const updatedSchema = registerSchema.extend({
  pendingChange: z.object({ txId: z.string() }).describe('The transaction that is not sealed yet.'),
});
const countSchema = z.object({
  count: z.int(),
  byStatus: z.record(z.string(), z.int()),
  byPurpose: z.record(z.string(), z.int()),
});
const exampleId = '5f0c1d9e3b7a4c2688e1f4a2b6d80c11';

const route = { tag: 'Registers', policy: 'RequireAuthenticated' } as const;
const changes = {
  ...route,
  path: '/api/registers/:registerId',
  rateLimit: 'Strict',
  params: registerParams,
} as const;
const reads = { ...route, method: 'GET', rateLimit: 'Api' } as const;

function refuseImmutable(body: z.output<typeof updateBody>): void {
  const set = immutable.filter((name) => Object.hasOwn(body, name));
  if (set.length > 0) throw refusal('IMMUTABLE_FIELD', { details: { fields: set } });
}

function mountChanges(app: App, deps: RegistersDeps): void {
  addRoute(app, {
    ...changes,
    method: 'PUT',
    operationId: 'updateRegister',
    summary: 'Change title, description, metadata or advertisement',
    body: { schema: updateBody, example: { title: 'Invoices', metadata: { region: 'north' } } },
    resource: async ({ caller, params, body }) => {
      refuseImmutable(body);
      return getWritableRegister(deps.database.read, caller, params.registerId);
    },
    answers: {
      200: json('The register as it is now.', registerSchema),
      202: json('The change is pending.', updatedSchema),
    },
    refusals: [...ofWritableRegister, ...refusals('IMMUTABLE_FIELD'), ...ofSubmission],
    handle: async ({ caller, body, resource, request }) => {
      const subject = { caller, token: bearerOf(request) };
      const { register, pendingTxId } = await updateRegister(deps, subject, resource, body);
      const shown = presentRegister(register);
      return pendingTxId === undefined
        ? answer(200, shown)
        : answer(202, { ...shown, pendingChange: { txId: pendingTxId } });
    },
  });

  addRoute(app, {
    ...changes,
    method: 'DELETE',
    operationId: 'deleteRegister',
    summary: 'Delete a register here, by a wallet of an Owner or Admin',
    resource: visibleRegister(() => deps.database.read),
    answers: { 204: empty('The register is deleted here.') },
    refusals: [
      ...ofVisibleRegister,
      ...refusals('SYSTEM_REGISTER_PROTECTED', 'DELETE_NOT_ATTESTED', 'REGISTER_NOT_READY'),
      ...ofWallets,
    ],
    handle: async ({ caller, resource, request }) => {
      await deleteRegister(deps, { caller, token: bearerOf(request) }, resource);
      return answer(204, undefined, { warning: '199 - "Other installations keep their replicas."' });
    },
  });
}

function mountCreation(app: App, deps: RegistersDeps): void {
  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/registers/initiate',
    operationId: 'initiateRegister',
    summary: 'Begin a register; returns the required attestations',
    policy: 'CanManageRegisters',
    rateLimit: 'Strict',
    body: {
      schema: initiateBody,
      example: {
        title: 'Invoices',
        description: 'Invoices of the northern region',
        metadata: { region: 'north' },
      },
    },
    resource: async ({ caller, body }) => assertMayCreate(caller, body.purpose),
    idempotency: deps.idempotency,
    answers: { 201: json('The required attestations.', registrationSchema) },
    refusals: [
      ...refusals('INVALID_POLICY', 'MECHANISM_NOT_SUPPORTED', 'REGISTER_EXISTS', 'REGISTRATION_LIMIT'),
      ...refusals('OWNER_WALLET_REQUIRED', 'PERSON_REQUIRED'),
      ...ofWallets,
    ],
    handle: ({ caller, body, request }) => initiate(deps, { caller, token: bearerOf(request) }, body),
  });

  addRoute(app, {
    ...route,
    method: 'POST',
    path: '/api/registers/finalize',
    operationId: 'finalizeRegister',
    summary: 'Create the register from its attestations; its genesis is submitted',
    rateLimit: 'Strict',
    body: {
      schema: finalizeBody,
      example: {
        registerId: exampleId,
        nonce: 'q9tJ6o0n2yq1rUeLw8b7Zr3m4cXkVdPs5hGfTaYiNQE',
        autoAttest: true,
      },
    },
    answers: { 200: json('The register.', begunSchema) },
    refusals: [
      ...refusals('REGISTRATION_NOT_FOUND', 'REGISTRATION_FINALIZED', 'REGISTRATION_EXPIRED'),
      ...refusals('ATTESTATION_INVALID', 'OWNER_ATTESTATION_MISSING', 'SENDER_NOT_AUTHORIZED'),
      ...refusals('VALIDATOR_UNAVAILABLE', 'REGISTER_EXISTS', 'VAL_STRUCT_012'),
      ...ofWallets,
    ],
    handle: ({ caller, body, request }) => {
      const { registerId, nonce, autoAttest } = body;
      const signedAttestations = body.signedAttestations.map(({ attestationData, ...rest }) => ({
        role: attestationData.role,
        subject: attestationData.subject,
        ...rest,
      }));
      const subject = { caller, token: bearerOf(request) };
      return finalize(deps, subject, { registerId, nonce, autoAttest, signedAttestations });
    },
  });
}

function assertMayCreate(caller: Caller, purpose: 'General' | 'System'): void {
  if (purpose !== 'System' || decide('CanCreateSystemRegisters', caller) === 'allow') return;
  throw new AppError('forbidden', 'FORBIDDEN', 'Only the system organisation creates system registers.');
}

export function mountRegisters(app: App, deps: RegistersDeps): void {
  mountCreation(app, deps);
  mountChanges(app, deps);

  addRoute(app, {
    ...reads,
    path: '/api/registers',
    operationId: 'listRegisters',
    summary: 'Registers your organisation subscribes to, and system registers',
    query: listQuery,
    answers: { 200: json('A page of registers.', pageSchema(registerSchema)) },
    refusals: [],
    handle: async ({ caller, query }) => {
      const window = { ...query, ...pageWindow(query) };
      const { items, total } = await listRegisters(deps.database.read, scopeOf(caller), window);
      return page(items.map(presentRegister), query, total);
    },
  });

  addRoute(app, {
    ...reads,
    path: '/api/registers/stats/count',
    operationId: 'countRegisters',
    summary: 'Number of registers that you see, by status and purpose',
    answers: { 200: json('The counts.', countSchema) },
    refusals: [],
    handle: async ({ caller }) => {
      const scope = { ...scopeOf(caller), ...(caller.roles.includes('SystemAdmin') && { all: true }) };
      const groups = await countRegisters(deps.database.read, scope);
      const sumBy = (member: 'status' | 'purpose') => {
        const sums: Record<string, number> = {};
        for (const group of groups) sums[group[member]] = (sums[group[member]] ?? 0) + group.count;
        return sums;
      };
      const count = groups.reduce((sum, group) => sum + group.count, 0);
      return { count, byStatus: sumBy('status'), byPurpose: sumBy('purpose') };
    },
  });

  addRoute(app, {
    ...reads,
    path: '/api/registers/:registerId',
    operationId: 'getRegister',
    summary: 'One register',
    params: registerParams,
    resource: visibleRegister(() => deps.database.read),
    answers: { 200: json('The register.', registerSchema) },
    refusals: ofVisibleRegister,
    handle: ({ resource }) => presentRegister(resource),
  });
}
