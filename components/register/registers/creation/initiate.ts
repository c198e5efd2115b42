import { randomBytes, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { sha256 } from '#core/crypto/hash.ts';
import { encodeBase64Url } from '#core/encoding/base64.ts';
import { apiTimestamp, formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { findDeadlock, parsePolicy, type RegisterPolicy } from '#core/ledger/policy.ts';
import { parseRegisterId, registerIdOfUuid } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Database, isUniqueViolation } from '#kit/db/db.ts';
import type { Wallets } from '../../clients/wallets.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Subject } from '../state/access.ts';
import { loadChain } from '../state/store.ts';
import { type Draft, presentAttestation, requestAttestations } from './draft.ts';
import { type RosterRequest, resolveRoster } from './roster.ts';
import type { registrationSchema } from './schemas.ts';
import { openRegistration } from './store.ts';

interface InitiateRequest extends RosterRequest {
  readonly title: string;
  readonly description?: string | undefined;
  readonly purpose: 'General' | 'System';
  readonly devMode: boolean;
  readonly advertise: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly policy?: unknown;
  readonly registerId?: string | undefined;
}

export interface InitiateDeps {
  readonly database: Database<RegisterSchema>;
  readonly wallets: Wallets;
  readonly clock: Clock;
  readonly pendingTtlMs: number;
  readonly maxOpenRegistrations: number;
}

function refuseInput(message: string): never {
  throw new AppError('invalid', 'INVALID_REQUEST', message);
}

/** The first policy of a register; system registers accept derived transaction ids only. */
export function firstPolicy(request: Pick<InitiateRequest, 'policy' | 'purpose'>): RegisterPolicy {
  const policy = parsePolicy(request.policy ?? {});
  if (policy.version !== 1) refuseInput('The policy of a new register must have version 1.');
  const deadlock = findDeadlock(policy);
  if (deadlock !== undefined) {
    refuseInput(`policy.${deadlock.field}: less than ${deadlock.least} would stop the register for good.`);
  }
  if (request.purpose !== 'System') return policy;
  return { ...policy, consensus: { ...policy.consensus, requireBoundTxId: true } };
}

async function chooseId(deps: InitiateDeps, caller: Caller, requested: string | undefined): Promise<string> {
  if (requested === undefined) return registerIdOfUuid(randomUUID());
  if (!caller.roles.includes('SystemAdmin')) {
    throw new AppError('forbidden', 'FORBIDDEN', 'Only a SystemAdmin may choose the id of a register.');
  }
  const id = parseRegisterId(requested);
  // The id of a deleted register stays reserved: its dockets are on other installations.
  if ((await loadChain(deps.database.read, id)) !== undefined) throw refusal('REGISTER_EXISTS');
  return id;
}

/** First phase of the creation: writes the draft and returns what its members must sign. */
export async function initiate(
  deps: InitiateDeps,
  subject: Subject,
  request: InitiateRequest,
): Promise<z.output<typeof registrationSchema>> {
  const { caller } = subject;
  const policy = firstPolicy(request);
  const registerId = await chooseId(deps, caller, request.registerId);
  const roster = await resolveRoster(deps.wallets, subject, request);
  const nowMs = deps.clock.nowMs();
  const grantedAt = formatLedgerTimestamp(deps.clock.nowMicros());
  const draft: Draft = {
    registerId,
    title: request.title,
    description: request.description,
    purpose: request.purpose,
    devMode: request.devMode,
    advertise: request.advertise,
    metadata: request.metadata,
    policyText: JSON.stringify(policy),
    attestations: requestAttestations({ registerId, title: request.title, grantedAt }, roster),
  };
  const nonce = encodeBase64Url(randomBytes(32));
  const expiresAt = new Date(nowMs + deps.pendingTtlMs);
  await store(deps, {
    registerId,
    organizationId: caller.organizationId,
    nonceHash: Buffer.from(sha256(nonce)),
    draft,
    createdAt: new Date(nowMs),
    expiresAt,
  });
  return {
    id: registerId,
    registerId,
    title: draft.title,
    purpose: draft.purpose,
    createdAt: apiTimestamp(nowMs),
    expiresAt: apiTimestamp(expiresAt.getTime()),
    nonce,
    attestationsToSign: draft.attestations.map(presentAttestation),
  };
}

async function store(
  deps: InitiateDeps,
  registration: Parameters<typeof openRegistration>[1],
): Promise<void> {
  try {
    const opened = await deps.database.transact((tx) =>
      openRegistration(tx, registration, deps.maxOpenRegistrations),
    );
    if (!opened) throw refusal('REGISTRATION_LIMIT', { retryAfterSeconds: 60 });
  } catch (error) {
    if (isUniqueViolation(error, 'registrations_pkey')) throw refusal('REGISTER_EXISTS', { cause: error });
    throw error;
  }
}
