import { z } from 'zod';
import { sha256Hex } from '#core/crypto/hash.ts';
import { identifier } from '#core/identity/identifier.ts';
import { type App, addRoute, bearerOf, json } from '#kit/http/http.ts';
import { ofWallets, refusals } from '../../errors.ts';
import type { DefaultSet } from '../directory/default-set.ts';
import type { Subject } from '../state/access.ts';
import { findRegisterEver } from '../state/store.ts';
import { address, type RegisterSpec } from './spec.ts';
import { type UpsertDeps, upsertRegister } from './upsert.ts';

export interface SandboxDeps extends UpsertDeps {
  /** A sandbox has the validators of other new registers. */
  readonly defaultSet: DefaultSet;
}

interface SandboxRequest {
  readonly organizationId: string;
  /** The wallet of the calling service that owns the register. */
  readonly walletAddress: z.output<typeof address>;
}

/** The binding of an organisation's sandbox, in the form of an identifier. */
function uidOf(organizationId: string): string {
  const digest = sha256Hex(`sandbox register of ${organizationId}`);
  const ends = [0, 8, 12, 16, 20, 32];
  return ends
    .slice(1)
    .map((end, at) => digest.slice(ends[at], end))
    .join('-');
}

/** Nothing of a sandbox is the caller's choice but whose it is and by which wallet it is owned. */
function specOf({ organizationId, walletAddress }: SandboxRequest): RegisterSpec {
  return {
    title: 'Rehearsals',
    description: 'Rehearsals of workflows. Its data is not encrypted.',
    purpose: 'General',
    organizationId,
    owners: [{ walletAddress }],
    admins: [],
    devMode: true,
    metadata: { sandbox: 'true' },
    policy: {},
    validators: [],
    attestations: [],
  };
}

/**
 * Creates the sandbox register of an organisation, or continues its creation; the wallet of the caller attests for it.
 * @returns id of the register, and whether it has begun
 */
async function ensureSandbox(deps: SandboxDeps, subject: Subject, request: SandboxRequest) {
  const uid = uidOf(request.organizationId);
  const members = { ...deps, namedSet: (registerId: string) => deps.defaultSet(registerId) };
  const registerId = await upsertRegister(members, subject, uid, specOf(request));
  const known = await findRegisterEver(deps.database.read, registerId);
  return { registerId, hasBegun: known !== undefined };
}

/** The sandbox registers of organisations: for the blueprint service only, never reachable through the gateway. */
export function mountSandboxes(app: App, deps: SandboxDeps): void {
  addRoute(app, {
    method: 'PUT',
    path: '/api/internal/sandboxes/:organizationId',
    operationId: 'ensureSandboxRegister',
    tag: 'Registers',
    summary: 'The register in which an organisation rehearses, created when it does not exist',
    policy: 'RequireBlueprintService',
    rateLimit: 'Api',
    params: z.object({ organizationId: identifier }),
    body: {
      schema: z.strictObject({ walletAddress: address.describe('A wallet of the caller, which owns it.') }),
      example: { walletAddress: 'w1qqtgukmgcscplf4pmp5a22swgugyst3qj0wd8hz5n0tzvrnuz4dqsua9q4' },
    },
    answers: {
      200: json('The register.', z.object({ registerId: z.string(), hasBegun: z.boolean() })),
    },
    refusals: [
      ...refusals('REGISTER_DELETED', 'VALIDATOR_UNAVAILABLE', 'REGISTER_EXISTS', 'IDEMPOTENCY_IN_PROGRESS'),
      ...ofWallets,
    ],
    handle: ({ caller, params, body, request }) =>
      ensureSandbox(deps, { caller, token: bearerOf(request) }, { ...params, ...body }),
  });
}
