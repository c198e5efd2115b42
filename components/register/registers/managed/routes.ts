import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';
import { identifier } from '#core/identity/identifier.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import { type App, callerOf, idempotencyHeaders, jsonAnswer } from '#kit/http/http.ts';
import { bearerOf } from '../../bearer.ts';
import { refusal } from '../../errors.ts';
import { isAccepted, sendAnswer } from '../../governance/control/answer.ts';
import type { DeleteDeps } from '../lifecycle/delete.ts';
import { countRegisters, type Register } from '../state/store.ts';
import { collect, missingOf } from './attestations.ts';
import { type ChangeManaged, changeBody } from './changes.ts';
import { DELETION_POLICIES, removeManaged } from './remove.ts';
import { attestationBody, specBody, uidText } from './spec.ts';
import { getFound, presentDeletion, readStatus, type StatusDeps } from './status.ts';
import { findManager, hasBegun, type Managed } from './store.ts';
import { type UpsertDeps, upsertRegister } from './upsert.ts';
import { setValidation, VALIDATION_STATES, type ValidationDeps } from './validation.ts';

export interface ManagedDeps extends UpsertDeps, StatusDeps, DeleteDeps, ValidationDeps {
  readonly wallets: UpsertDeps['wallets'];
  readonly validators: StatusDeps['validators'];
  readonly idempotency: Idempotency;
  readonly change: ChangeManaged;
}

const tags = ['Operator'];
const key = z.string().regex(/^(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})$/);
const params = z.object({ key });
const config = { policy: 'RequireOperator', rateLimit: 'Api' } as const;

/** A register that exists and accepts changes. */
async function getChangeable(deps: ManagedDeps, name: string): Promise<Register> {
  const { known } = await getFound(deps, name);
  if (known === undefined || known.register.status === 'Checking')
    throw refusal('REGISTER_NOT_READY', { retryAfterSeconds: 1 });
  if (known.deletion !== undefined) throw refusal('REGISTER_DELETED');
  if (known.register.status === 'Halted') throw refusal('REGISTER_HALTED');
  return known.register;
}

function mountUpsert(app: App, deps: ManagedDeps): void {
  app.put(
    '/api/internal/registers/:uid',
    {
      config,
      schema: {
        operationId: 'upsertManagedRegister',
        tags,
        summary: 'Create the register of a custom resource, or continue its creation',
        params: z.object({ uid: uidText }),
        body: specBody,
        response: jsonAnswer('The register.'),
      },
    },
    async (request) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const registerId = await upsertRegister(deps, subject, request.params.uid, request.body);
      return readStatus(deps, subject, await getFound(deps, registerId));
    },
  );
  app.post(
    '/api/internal/registers',
    {
      config,
      schema: {
        operationId: 'createManagedRegister',
        tags,
        summary: 'The same, with the UID in the body',
        body: specBody.extend({ uid: uidText }),
        response: jsonAnswer('The register.'),
      },
    },
    async (request) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const { uid, ...spec } = request.body;
      const registerId = await upsertRegister(deps, subject, uid, spec);
      return readStatus(deps, subject, await getFound(deps, registerId));
    },
  );
}

function mountOne(app: App, deps: ManagedDeps): void {
  app.get(
    '/api/internal/registers/:key',
    {
      config,
      schema: {
        operationId: 'getManagedRegister',
        tags,
        summary: 'The complete status of a register',
        params,
        response: jsonAnswer('The register.'),
      },
    },
    async (request) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      return readStatus(deps, subject, await getFound(deps, request.params.key));
    },
  );
  app.delete(
    '/api/internal/registers/:key',
    {
      config,
      schema: {
        operationId: 'releaseManagedRegister',
        tags,
        summary: 'Release the register of a custom resource, or delete it',
        params,
        querystring: z.object({ policy: z.enum(DELETION_POLICIES) }),
        response: jsonAnswer('The deletion.'),
      },
    },
    async (request) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const { policy } = request.query;
      const found = await removeManaged(deps, subject, request.params.key, policy);
      const registerId = found?.known?.register.registerId ?? found?.managed?.registerId ?? null;
      return { registerId, deletion: presentDeletion(found?.known?.deletion) };
    },
  );
}

function mountCount(app: App, deps: ManagedDeps): void {
  app.get(
    '/api/internal/organizations/:organizationId/registers/count',
    {
      config,
      schema: {
        operationId: 'countOrganizationRegisters',
        tags,
        summary: 'Number of registers that an organisation sees',
        params: z.object({ organizationId: identifier }),
        response: jsonAnswer('The count.'),
      },
    },
    async (request) => {
      const { organizationId } = request.params;
      const groups = await countRegisters(deps.database.read, { all: false, organizationId });
      return { organizationId, count: groups.reduce((sum, { count }) => sum + count, 0) };
    },
  );
}

function mountChanges(app: App, deps: ManagedDeps): void {
  app.post(
    '/api/internal/registers/:key/changes',
    {
      config,
      schema: {
        operationId: 'changeManagedRegister',
        tags,
        summary: 'Change a register as a member of its roster',
        params,
        body: changeBody,
        headers: idempotencyHeaders,
        response: jsonAnswer('The change was submitted.', 202),
      },
    },
    async (request, reply) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const { body } = request;
      const register = await getChangeable(deps, request.params.key);
      const idempotencyKey = request.headers['idempotency-key'];
      const scope = [`change:${register.registerId}:${subject.caller.subject}`];
      const answer = await deps.idempotency.once(
        { key: idempotencyKey, scope, body },
        () => deps.change({ register, subject }, body),
        isAccepted,
      );
      return sendAnswer(reply, answer);
    },
  );
  app.put(
    '/api/internal/registers/:key/validation',
    {
      config,
      schema: {
        operationId: 'updateManagedRegisterValidation',
        tags,
        summary: 'Start, pause or stop a register at all its validators',
        params,
        body: z.strictObject({ state: z.enum(VALIDATION_STATES) }),
        response: jsonAnswer('The state of validation.'),
      },
    },
    async (request) => {
      const { known } = await getFound(deps, request.params.key);
      if (known === undefined || known.deletion !== undefined) throw refusal('REGISTER_NOT_READY');
      return setValidation(deps, known.register, request.body.state);
    },
  );
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

/** Owners and admins whose keys the operator does not hold attest on these routes. */
function mountAttestations(app: App, deps: ManagedDeps): void {
  app.post(
    '/api/registers/:registerId/attestations',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'attestRegister',
        tags: ['Registers'],
        summary: 'Attest for the draft register of a custom resource',
        params: z.object({ registerId: z.string() }),
        body: z.strictObject({
          attestations: z.array(attestationBody).max(25).default([]),
          autoAttest: z.boolean().default(false).describe('Sign with the wallets of the caller.'),
        }),
        response: jsonAnswer('Attestations that are still missing.'),
      },
    },
    async (request) => {
      const { attestations: given, autoAttest } = request.body;
      if (given.length === 0 && !autoAttest)
        throw new AppError(
          'invalid',
          'INVALID_REQUEST',
          'The request must contain attestations or autoAttest: true.',
        );
      const managed = await getOpenDraft(deps, request.params.registerId);
      const token = autoAttest ? bearerOf(request) : undefined;
      const after = await collect(deps, managed, { given, token });
      const missing = missingOf(after);
      if (autoAttest && missing.length === missingOf(managed).length) throw refusal('SENDER_NOT_AUTHORIZED');
      const named = missing.map(({ walletAddress, data }) => ({ walletAddress, role: data.role }));
      return { registerId: after.registerId, missing: named };
    },
  );
}

/** Registers of custom resources: routes for the operator only, never reachable through the gateway. */
export function mountManaged(app: App, deps: ManagedDeps): void {
  mountUpsert(app, deps);
  mountOne(app, deps);
  mountCount(app, deps);
  mountChanges(app, deps);
  mountAttestations(app, deps);
}
