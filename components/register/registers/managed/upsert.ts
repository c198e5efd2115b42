import { randomUUID } from 'node:crypto';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { AppError } from '#core/errors/errors.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { registerIdOfUuid } from '#core/ledger/register-id.ts';
import { isUniqueViolation, type Transactor } from '#kit/db/db.ts';
import type { Wallets } from '../../clients/wallets.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { type BeginDeps, beginRegister } from '../creation/begin.ts';
import { type Draft, type RequestedMember, requestAttestations } from '../creation/draft.ts';
import { firstPolicy } from '../creation/initiate.ts';
import { resolveRoster } from '../creation/roster.ts';
import type { NamedSet } from '../directory/default-set.ts';
import type { Subject } from '../state/access.ts';
import { findRegisterEver } from '../state/store.ts';
import { assertReadable } from '../state/texts.ts';
import { type CollectDeps, collect, isSameDraft, missingOf } from './attestations.ts';
import { type RegisterSpec, specHash } from './spec.ts';
import {
  clearDraft,
  findManaged,
  findManager,
  hasBegun,
  insertManaged,
  lockManaged,
  type Managed,
  release,
  saveDraft,
} from './store.ts';

export interface UpsertDeps extends CollectDeps, BeginDeps {
  readonly wallets: Wallets;
  readonly namedSet: NamedSet;
  /** The only id that a resource may give a register that does not exist yet. */
  readonly systemRegisterId: string;
}

/** Attestation by people takes time; a draft older than this is replaced. */
const draftTtlMs = 24 * 3_600_000;

function organizationOf(spec: RegisterSpec): string {
  if (spec.organizationId !== undefined) return spec.organizationId;
  if (spec.purpose === 'System') return SYSTEM_ORGANIZATION_ID;
  throw new AppError('invalid', 'INVALID_REQUEST', 'organizationId: required unless purpose is System');
}

/** Adopts an existing register: it must exist, belong to that organisation, and have no other resource. */
async function adopt(
  tx: Transactor<RegisterSchema>,
  spec: RegisterSpec & { readonly registerId: string },
  at: Date,
): Promise<void> {
  const { registerId, replaces } = spec;
  const found = await findRegisterEver(tx, registerId);
  if (found === undefined || found.deletion !== undefined) throw refusal('REGISTER_NOT_FOUND');
  const { register } = found;
  if ((register.organizationId ?? SYSTEM_ORGANIZATION_ID) !== organizationOf(spec))
    throw refusal('REGISTER_OF_ANOTHER_ORGANIZATION');
  if (register.purpose !== spec.purpose)
    throw refusal('IMMUTABLE_FIELD', { details: { fields: ['purpose'] } });
  const manager = await findManager(tx, registerId);
  if (manager === undefined) return;
  if (manager.uid !== replaces) throw refusal('REGISTER_BOUND', { details: { uid: manager.uid } });
  await release(tx, manager.uid, at);
}

/** A resource may create the system register of this installation, under its well-known id. */
async function isNewSystemRegister(
  { systemRegisterId }: UpsertDeps,
  tx: Transactor<RegisterSchema>,
  { purpose, registerId }: RegisterSpec,
): Promise<boolean> {
  const names = purpose === 'System' && registerId === systemRegisterId;
  return names && (await findRegisterEver(tx, systemRegisterId)) === undefined;
}

async function take(deps: UpsertDeps, uid: string, spec: RegisterSpec): Promise<Managed | undefined> {
  const at = new Date(deps.clock.nowMs());
  const organizationId = organizationOf(spec);
  const { purpose, registerId: adopted } = spec;
  const registerId = adopted ?? registerIdOfUuid(randomUUID());
  try {
    return await deps.database.transact(async (tx) => {
      const isNew = await isNewSystemRegister(deps, tx, spec);
      if (adopted !== undefined && !isNew) await adopt(tx, { ...spec, registerId: adopted }, at);
      await insertManaged(tx, { uid, registerId, organizationId, purpose, at });
      return findManaged(tx, uid);
    });
  } catch (error) {
    if (!isUniqueViolation(error, 'managed_registers_bound')) throw error;
    throw refusal('REGISTER_BOUND', { cause: error });
  }
}

/** The register id of a UID: fixed by the first call, whatever the outcome of that call. */
async function bind(deps: UpsertDeps, uid: string, spec: RegisterSpec): Promise<Managed> {
  const managed = (await findManaged(deps.database.read, uid)) ?? (await take(deps, uid, spec));
  if (managed === undefined || managed.releasedAt !== undefined) throw refusal('REGISTER_DELETED');
  if (spec.registerId !== undefined && spec.registerId !== managed.registerId)
    throw refusal('UID_BOUND', { details: { registerId: managed.registerId } });
  const fields = [
    ...(organizationOf(spec) === managed.organizationId ? [] : ['organizationId']),
    ...(spec.purpose === managed.purpose ? [] : ['purpose']),
  ];
  if (fields.length > 0) {
    const message = `${fields.join(' and ')} of a register cannot be changed.`;
    throw refusal('IMMUTABLE_FIELD', { message, details: { fields } });
  }
  return managed;
}

function isCurrent({ open }: Managed, hash: Buffer, nowMs: number): boolean {
  return open?.specHash.equals(hash) === true && open.expiresAt.getTime() > nowMs;
}

async function rosterOf(deps: UpsertDeps, subject: Subject, spec: RegisterSpec): Promise<RequestedMember[]> {
  const own = spec.owners.some((owner) => 'operatorWallet' in owner)
    ? (await deps.wallets.subjectWallets(subject.token))[0]?.walletAddress
    : undefined;
  const owners = spec.owners.map((owner) => {
    if ('walletAddress' in owner) return owner;
    if (own === undefined) throw refusal('OWNER_WALLET_REQUIRED');
    return { walletAddress: own };
  });
  return resolveRoster(deps.wallets, subject, { owners, additionalAdmins: spec.admins });
}

async function createDraft(deps: UpsertDeps, subject: Subject, managed: Managed, spec: RegisterSpec) {
  const { registerId } = managed;
  const { title, description, purpose, devMode, metadata } = spec;
  const policy = firstPolicy(spec);
  const roster = await rosterOf(deps, subject, spec);
  const grantedAt = formatLedgerTimestamp(deps.clock.nowMicros());
  const attestations = requestAttestations({ registerId, title, grantedAt }, roster);
  const facts = { registerId, title, description, purpose, devMode, metadata };
  const draft: Draft = { ...facts, advertise: false, policyText: JSON.stringify(policy), attestations };
  return draft;
}

/** The draft for a spec; of two concurrent drafts the first one wins. */
async function draftOf(
  deps: UpsertDeps,
  subject: Subject,
  managed: Managed,
  spec: RegisterSpec,
): Promise<Managed> {
  const hash = specHash(spec);
  const nowMs = deps.clock.nowMs();
  if (isCurrent(managed, hash, nowMs)) return managed;
  const draft = await createDraft(deps, subject, managed, spec);
  const open = { draft, specHash: hash, expiresAt: new Date(nowMs + draftTtlMs) };
  return deps.database.transact(async (tx) => {
    const now = await lockManaged(tx, managed.uid);
    if (isCurrent(now, hash, nowMs) || now.releasedAt !== undefined) return now;
    if (await hasBegun(tx, now.registerId)) return now;
    await saveDraft(tx, managed.uid, open);
    return { ...now, open, attestations: [] };
  });
}

/** Creates the register once every owner has attested; false when another call did, or replaced the draft. */
async function begin(deps: UpsertDeps, managed: Managed, spec: RegisterSpec): Promise<boolean> {
  const { open, registerId, organizationId, attestations } = managed;
  if (open === undefined || missingOf(managed).some(({ data }) => data.role === 'Owner')) return true;
  const { draft } = open;
  const roster = draft.attestations.flatMap(
    ({ data }) => attestations.find(({ subject }) => subject === data.subject) ?? [],
  );
  const validators = await deps.namedSet(registerId, spec.validators);
  const beginning = { draft, organizationId, roster, validators };
  const begun = await beginRegister(deps, beginning, async (tx) => {
    const now = await lockManaged(tx, managed.uid);
    if (!isSameDraft(now, managed) || now.releasedAt !== undefined) return false;
    if (await hasBegun(tx, registerId)) return false;
    await clearDraft(tx, managed.uid);
    return true;
  });
  return begun !== undefined;
}

const mostAttempts = 3;

/**
 * Creates the register of a custom resource, or continues an interrupted call: its id is fixed, a draft is written, the
 * caller's wallet attests, and with the attestations of all owners the register begins. Each step is its own commit,
 * which the next call finds. A register that has begun is not changed here.
 *
 * @returns id of the register
 */
export async function upsertRegister(
  deps: UpsertDeps,
  subject: Subject,
  uid: string,
  spec: RegisterSpec,
): Promise<string> {
  const managed = await bind(deps, uid, spec);
  const { registerId } = managed;
  const known = await findRegisterEver(deps.database.read, registerId);
  if (known?.deletion !== undefined) throw refusal('REGISTER_DELETED');
  if (known !== undefined) return registerId;
  assertReadable(spec);
  for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
    const drafted = await draftOf(deps, subject, managed, spec);
    const from = { given: spec.attestations, token: subject.token };
    const attested = await collect(deps, drafted, from);
    if (await begin(deps, attested, spec)) return registerId;
    if (await hasBegun(deps.database.read, registerId)) return registerId;
  }
  throw refusal('IDEMPOTENCY_IN_PROGRESS', { retryAfterSeconds: 1 });
}
