import { z } from 'zod';
import { isWalletAddress } from '#core/crypto/address.ts';
import { AppError } from '#core/errors/errors.ts';
import { decide } from '#core/identity/policies.ts';
import type { Idempotency } from '#kit/db/idempotency.ts';
import {
  type App,
  callerOf,
  emptyAnswer,
  idempotencyHeaders,
  jsonAnswer,
  page,
  pageWindow,
  paging,
} from '#kit/http/http.ts';
import { bearerOf } from '../../bearer.ts';
import type { Validators } from '../../clients/validators.ts';
import { storable } from '../../database/text.ts';
import { refusal } from '../../errors.ts';
import { sendAnswer } from '../../governance/control/answer.ts';
import { type FinalizeDeps, finalize } from '../creation/finalize.ts';
import { type InitiateDeps, initiate } from '../creation/initiate.ts';
import { getVisibleRegister, scopeOf } from '../state/access.ts';
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
const tags = ['Registers'];

function mountChanges(app: App, deps: RegistersDeps): void {
  app.put(
    '/api/registers/:registerId',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'updateRegister',
        tags,
        summary: 'Change title, description, metadata or advertisement',
        params: registerParams,
        body: updateBody,
        response: {
          ...jsonAnswer('The register as it is now.'),
          ...jsonAnswer('The change is pending.', 202),
        },
      },
    },
    async (request, reply) => {
      const { body, params } = request;
      const set = immutable.filter((name) => Object.hasOwn(body, name));
      if (set.length > 0) throw refusal('IMMUTABLE_FIELD', { details: { fields: set } });
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      return sendAnswer(reply, await updateRegister(deps, subject, params.registerId, body));
    },
  );
  app.delete(
    '/api/registers/:registerId',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'deleteRegister',
        tags,
        summary: 'Delete a register here, by a wallet of an Owner or Admin',
        params: registerParams,
        response: emptyAnswer('The register is deleted here.'),
      },
    },
    async (request, reply) => {
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      await deleteRegister(deps, subject, request.params.registerId);
      reply.header('warning', '199 - "Other installations keep their replicas."');
      return reply.code(204).send();
    },
  );
}

function mountCreation(app: App, deps: RegistersDeps): void {
  app.post(
    '/api/registers/initiate',
    {
      config: { policy: 'CanManageRegisters', rateLimit: 'Strict' },
      schema: {
        operationId: 'initiateRegister',
        tags,
        summary: 'Begin a register; returns the required attestations',
        body: initiateBody,
        headers: idempotencyHeaders,
        response: jsonAnswer('The required attestations.', 201),
      },
    },
    async (request, reply) => {
      const caller = callerOf(request);
      const { body } = request;
      if (body.purpose === 'System' && decide('CanCreateSystemRegisters', caller) !== 'allow') {
        throw new AppError(
          'forbidden',
          'FORBIDDEN',
          'Only the system organisation creates system registers.',
        );
      }
      const subject = { caller, token: bearerOf(request) };
      const key = request.headers['idempotency-key'];
      const scope = [`initiate:${caller.subject}`];
      const answer = await deps.idempotency.once({ key, scope, body }, async () => ({
        status: 201,
        body: await initiate(deps, subject, body),
      }));
      return reply.code(answer.status).send(answer.body);
    },
  );
  app.post(
    '/api/registers/finalize',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
      schema: {
        operationId: 'finalizeRegister',
        tags,
        summary: 'Create the register from its attestations; its genesis is submitted',
        body: finalizeBody,
        response: jsonAnswer('The register.'),
      },
    },
    async (request, reply) => {
      const { registerId, nonce, autoAttest, signedAttestations } = request.body;
      const subject = { caller: callerOf(request), token: bearerOf(request) };
      const returned = signedAttestations.map(({ attestationData, ...rest }) => ({
        role: attestationData.role,
        subject: attestationData.subject,
        ...rest,
      }));
      const finalization = { registerId, nonce, autoAttest, signedAttestations: returned };
      return reply.code(200).send(await finalize(deps, subject, finalization));
    },
  );
}

export function mountRegisters(app: App, deps: RegistersDeps): void {
  mountCreation(app, deps);
  mountChanges(app, deps);
  app.get(
    '/api/registers',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'listRegisters',
        tags,
        summary: 'Registers your organisation subscribes to, and system registers',
        querystring: listQuery,
        response: jsonAnswer('A page of registers.'),
      },
    },
    async (request) => {
      const { query } = request;
      const scope = scopeOf(callerOf(request));
      const { items, total } = await listRegisters(deps.database.read, scope, {
        ...query,
        ...pageWindow(query),
      });
      return page(items.map(presentRegister), query, total);
    },
  );
  app.get(
    '/api/registers/stats/count',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'countRegisters',
        tags,
        summary: 'Number of registers that you see, by status and purpose',
        response: jsonAnswer('The counts.'),
      },
    },
    async (request) => {
      const caller = callerOf(request);
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
  );
  app.get(
    '/api/registers/:registerId',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api' },
      schema: {
        operationId: 'getRegister',
        tags,
        summary: 'One register',
        params: z.object({ registerId: z.string() }),
        response: jsonAnswer('The register.'),
      },
    },
    async (request) => {
      const { registerId } = request.params;
      return presentRegister(await getVisibleRegister(deps.database.read, callerOf(request), registerId));
    },
  );
}
