import { DOCKET_SIGNING } from '#core/crypto/derivation-context.ts';
import { equalSecrets, sha256 } from '#core/crypto/hash.ts';
import { apiTimestamp, formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { quorum } from '#core/ledger/consensus.ts';
import { type ControlRecord, defaultCryptoPolicy } from '#core/ledger/control-record.ts';
import type { RosterAttestation } from '#core/ledger/owner-attestation.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Database, isUniqueViolation } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import type { RegisterSchema } from '../database/schema.ts';
import type { DefaultSet, Possessed } from '../directory/default-set.ts';
import { refusal } from '../errors.ts';
import { buildGenesis, type GenesisWork } from '../genesis/genesis.ts';
import { insertGenesisWork } from '../genesis/store.ts';
import {
  closeRegistration,
  countWrongNonce,
  findRegistration,
  type Registration,
} from '../registrations/store.ts';
import { subscribe } from '../subscriptions/store.ts';
import { type AttestDeps, attestAll, judgeAttestations, type ReturnedAttestation } from './attest.ts';
import type { Draft } from './draft.ts';
import type { Subject } from './roster.ts';
import { insertRegister } from './store.ts';

export interface FinalizeRequest {
  readonly registerId: string;
  readonly nonce: string;
  readonly signedAttestations: readonly ReturnedAttestation[];
  readonly autoAttest: boolean;
}

export interface FinalizeDeps extends AttestDeps {
  readonly database: Database<RegisterSchema>;
  readonly clock: Clock;
  readonly networkId: string;
  readonly defaultSet: DefaultSet;
  /** Genesis work was committed. */
  readonly onCreated: () => void;
}

const maxWrongNonces = 5;

/** Finds the registration and judges nonce and time; a finalised one with the right nonce is a replay (L-30). */
async function openOf(deps: FinalizeDeps, request: FinalizeRequest, subject: Subject): Promise<Registration> {
  const registerId = findRegisterId(request.registerId);
  const registration =
    registerId === undefined ? undefined : await findRegistration(deps.database.read, registerId);
  if (registration === undefined || registration.organizationId !== subject.caller.organizationId) {
    throw refusal('REGISTRATION_NOT_FOUND');
  }
  const nonceFits = equalSecrets(sha256(request.nonce), registration.nonceHash);
  if (registration.answer !== undefined) {
    if (nonceFits) return registration;
    throw refusal('REGISTRATION_FINALIZED');
  }
  const spent = registration.wrongNonces >= maxWrongNonces;
  if (spent || deps.clock.nowMs() >= registration.expiresAt.getTime()) throw refusal('REGISTRATION_EXPIRED');
  if (!nonceFits) {
    await deps.database.transact((tx) => countWrongNonce(tx, registration.registerId));
    throw refusal('ATTESTATION_INVALID', { message: 'The nonce is not that of the registration.' });
  }
  return registration;
}

function recordOf(
  draft: Draft,
  facts: {
    readonly createdAt: string;
    readonly roster: readonly RosterAttestation[];
    readonly validators: readonly Possessed[];
  },
): ControlRecord {
  const policy = parsePolicy(JSON.parse(draft.policyText));
  return {
    registerId: draft.registerId,
    name: draft.title,
    description: draft.description,
    purpose: draft.purpose,
    createdAt: facts.createdAt,
    attestations: facts.roster,
    cryptoPolicy: defaultCryptoPolicy(facts.createdAt, draft.devMode),
    registerPolicy: policy,
    validators: {
      validators: facts.validators.map((member) => ({
        validatorId: member.validatorId,
        publicKey: member.publicKey,
        algorithm: member.algorithm,
        derivationContext: DOCKET_SIGNING,
        status: 'Active',
        authorizedAt: facts.createdAt,
        proofOfPossession: member.proofOfPossession,
      })),
      requiredSignatures: quorum(facts.validators.length, policy.consensus.signatureThresholdMin),
      version: 1,
    },
    metadata: draft.metadata,
  };
}

/**
 * Second phase of a register (L-27 to L-34): verifies the attestations, asks the default validators to prove their
 * keys, and writes register, control projection and genesis work in one commit. The answer does not wait for docket 0.
 */
export async function finalize(
  deps: FinalizeDeps,
  subject: Subject,
  request: FinalizeRequest,
): Promise<unknown> {
  const registration = await openOf(deps, request, subject);
  if (registration.answer !== undefined) return registration.answer;
  const { draft, organizationId } = registration;
  if (organizationId === undefined) throw refusal('REGISTRATION_NOT_FOUND');
  const automatic = request.autoAttest && request.signedAttestations.length === 0;
  const roster = automatic
    ? await attestAll(deps, draft.attestations, subject.token)
    : judgeAttestations(draft.attestations, request.signedAttestations, deps.verifier);
  const validators = await deps.defaultSet(draft.registerId);
  const systemKey = await deps.wallets.systemKey();
  const createdAt = formatLedgerTimestamp(deps.clock.nowMicros());
  const record = recordOf(draft, { createdAt, roster, validators });
  const genesis = buildGenesis({ record, organizationId, systemKey });
  const answer = await write(deps, { draft, organizationId, record, genesis });
  // Somebody finalised it at the same time: theirs is the register, and its answer is ours.
  if (answer === undefined) return finalize(deps, subject, request);
  deps.onCreated();
  return answer;
}

interface NewLedger {
  readonly draft: Draft;
  readonly organizationId: string;
  readonly record: ControlRecord;
  readonly genesis: GenesisWork;
}

/** Writes everything a register starts with; undefined when the registration was finalised already. */
async function write(deps: FinalizeDeps, { draft, organizationId, record, genesis }: NewLedger) {
  const at = new Date(deps.clock.nowMs());
  const answer = {
    registerId: draft.registerId,
    id: draft.registerId,
    status: 'created',
    genesisTransactionId: genesis.txId,
    genesisDocketId: '0',
    createdAt: apiTimestamp(at.getTime()),
  };
  const register = {
    registerId: draft.registerId,
    networkId: deps.networkId,
    title: draft.title,
    description: draft.description,
    purpose: draft.purpose,
    devMode: draft.devMode,
    advertise: draft.advertise,
    metadata: draft.metadata,
    policyText: draft.policyText,
    policyVersion: record.registerPolicy.version,
    organizationId,
    genesisTransactionId: genesis.txId,
    systemKey: genesis.systemKey,
    createdAt: at,
  };
  try {
    return await deps.database.transact(async (tx) => {
      if (!(await closeRegistration(tx, draft.registerId, answer))) return undefined;
      const control = { members: record.validators.validators, roster: record.attestations };
      const registerNo = await insertRegister(tx, register, control);
      await insertGenesisWork(tx, registerNo, genesis);
      await subscribe(tx, { organizationId, registerNo, kind: 'Owner', at });
      const data = { registerId: draft.registerId, organizationId, purpose: draft.purpose };
      await appendEvent(tx, { kind: 'RegisterCreated', key: draft.registerId, data });
      return answer;
    });
  } catch (error) {
    if (isUniqueViolation(error, 'registers_register_id_key'))
      throw refusal('REGISTER_EXISTS', { cause: error });
    throw error;
  }
}
