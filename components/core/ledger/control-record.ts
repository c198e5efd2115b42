import { z } from 'zod';
import { ALGORITHMS, type Algorithm } from '../crypto/algorithm.ts';
import { DOCKET_SIGNING } from '../crypto/derivation-context.ts';
import type { Verifier } from '../crypto/verify.ts';
import { decodeBase64Any } from '../encoding/base64.ts';
import { canonicalJson } from '../encoding/jcs.ts';
import { AppError, isAppError, type Violation, violation } from '../errors/errors.ts';
import { quorum, type ValidatorMember } from './consensus.ts';
import { findMemberAddress } from './did.ts';
import {
  attestationBytes,
  ROSTER_ROLES,
  type RosterAttestation,
  verifyAttestation,
} from './owner-attestation.ts';
import { parsePolicy, type RegisterPolicy } from './policy.ts';
import { verifyPossession } from './possession.ts';
import type { TransactionEnvelope } from './transaction.ts';

const GENESIS_BLUEPRINT = 'genesis';
const GENESIS_ACTION = 'register-creation';
export const MAX_ROSTER = 25;
export const MAX_VALIDATORS = 100;

/** A validator of the control record. Endpoints are directory data and not part of it. */
interface ControlValidator extends ValidatorMember {
  readonly derivationContext: string;
  readonly status: 'Active' | 'Rotated' | 'Revoked';
  readonly authorizedAt: string;
  readonly revokedAt?: string | undefined;
  /** Standard padded base64 over possessionBytes. */
  readonly proofOfPossession: string;
}

/** The signature algorithms that a register accepts. */
export interface CryptoPolicy {
  readonly version: number;
  readonly acceptedSignatureAlgorithms: readonly Algorithm[];
  readonly requiredSignatureAlgorithms: readonly Algorithm[];
  readonly acceptedEncryptionSchemes: readonly string[];
  readonly acceptedHashFunctions: readonly string[];
  readonly enforcementMode: 'Permissive' | 'Strict';
  readonly effectiveFrom: string;
  readonly deprecatedAlgorithms: readonly string[];
  readonly devMode: boolean;
}

/** The payload of a genesis transaction: the rules with which a register starts. */
export interface ControlRecord {
  readonly registerId: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly purpose: 'General' | 'System';
  readonly createdAt: string;
  readonly attestations: readonly RosterAttestation[];
  readonly cryptoPolicy: CryptoPolicy;
  readonly registerPolicy: RegisterPolicy;
  readonly validators: {
    readonly validators: readonly ControlValidator[];
    /** May raise the quorum, never lower it. */
    readonly requiredSignatures: number;
    readonly version: number;
  };
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

interface GenesisFacts {
  readonly record: ControlRecord;
  readonly payloadHash: string;
  /** org_id claim of the creator. */
  readonly organizationId: string;
  readonly systemWalletAddress: string;
  readonly createdAt: string;
}

const text = z.string().min(1).max(1024);
const algorithm = z.enum(ALGORITHMS);
const registerId = z.string().regex(/^[0-9a-f]{32}$/);

const attestationSchema = z.strictObject({
  role: z.enum(ROSTER_ROLES),
  subject: z.string().min(1).max(255),
  publicKey: text,
  signature: text,
  algorithm,
  grantedAt: text,
});

const validatorSchema = z.strictObject({
  validatorId: z.string().regex(/^[A-Za-z0-9._-]{1,128}$/),
  publicKey: text,
  algorithm,
  derivationContext: text,
  status: z.enum(['Active', 'Rotated', 'Revoked']),
  authorizedAt: text,
  revokedAt: text.optional(),
  proofOfPossession: text,
});

/** Schema of a crypto policy. judgeCrypto and updateCryptoPolicy judge its meaning. */
export const cryptoPolicySchema = z.strictObject({
  version: z.int().min(1),
  acceptedSignatureAlgorithms: z.array(algorithm).min(1),
  requiredSignatureAlgorithms: z.array(algorithm),
  acceptedEncryptionSchemes: z.array(text),
  acceptedHashFunctions: z.array(text),
  enforcementMode: z.enum(['Permissive', 'Strict']),
  effectiveFrom: text,
  deprecatedAlgorithms: z.array(text),
  devMode: z.boolean(),
});

const controlRecordSchema = z.strictObject({
  registerId,
  name: z.string().min(1).max(128),
  description: z.string().max(2048).optional(),
  purpose: z.enum(['General', 'System']),
  createdAt: text,
  attestations: z.array(attestationSchema).min(1).max(MAX_ROSTER),
  cryptoPolicy: cryptoPolicySchema,
  registerPolicy: z.unknown().transform(parsePolicy),
  validators: z.strictObject({
    validators: z.array(validatorSchema).min(1).max(MAX_VALIDATORS),
    requiredSignatures: z.int().min(1).max(MAX_VALIDATORS),
    version: z.int().min(1),
  }),
  metadata: z.record(z.string().min(1).max(64), z.string().max(512)).optional(),
});

/** The crypto policy of a register that is created without one. */
export function defaultCryptoPolicy(effectiveFrom: string, devMode: boolean): CryptoPolicy {
  return {
    version: 1,
    acceptedSignatureAlgorithms: [...ALGORITHMS],
    requiredSignatureAlgorithms: [],
    acceptedEncryptionSchemes: ['XCHACHA20-POLY1305', 'AES-256-GCM'],
    acceptedHashFunctions: ['SHA-256'],
    enforcementMode: 'Strict',
    effectiveFrom,
    deprecatedAlgorithms: [],
    devMode,
  };
}

/**
 * Parses a control record from JSON data. Shape only: judgeControlRecord verifies the signatures.
 * @throws AppError invalid INVALID_CONTROL_RECORD or INVALID_POLICY
 */
export function parseControlRecord(value: unknown): ControlRecord {
  const result = controlRecordSchema.safeParse(value);
  if (result.success) return result.data;
  const violations = result.error.issues.map((issue) =>
    violation('INVALID_CONTROL_RECORD', issue.message, issue.path.join('.')),
  );
  const first = violations[0];
  throw new AppError(
    'invalid',
    'INVALID_CONTROL_RECORD',
    `Control record: ${first?.field} ${first?.message}`,
    {
      violations,
    },
  );
}

/** The first validator set. */
export function initialValidators(record: ControlRecord): ValidatorMember[] {
  return record.validators.validators
    .filter((each) => each.status === 'Active')
    .map(({ validatorId, publicKey, algorithm: keyAlgorithm }) => ({
      validatorId,
      publicKey,
      algorithm: keyAlgorithm,
    }));
}

/** The first owner's wallet address. Undefined only for a record that judgeControlRecord refuses. */
export function creatorAddress(record: ControlRecord): string | undefined {
  const owner = record.attestations.find((each) => each.role === 'Owner');
  return owner === undefined ? undefined : findMemberAddress(owner.subject);
}

function verifyRosterEntry(record: ControlRecord, entry: RosterAttestation, verifier: Verifier): boolean {
  const { role, subject, grantedAt } = entry;
  const data = { role, subject, registerId: record.registerId, registerName: record.name, grantedAt };
  try {
    const signature = decodeBase64Any(entry.signature);
    return verifyAttestation(verifier, attestationBytes(data), subject, { ...entry, signature });
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

function verifyValidatorEntry(record: ControlRecord, entry: ControlValidator, verifier: Verifier): boolean {
  const facts = { ...entry, registerId: record.registerId };
  try {
    return verifyPossession(verifier, facts, decodeBase64Any(entry.proofOfPossession));
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

/**
 * Judges a control record: every attestation, every proof of possession, and the numbers that depend on one another.
 */
export function judgeControlRecord(record: ControlRecord, verifier: Verifier): Violation[] {
  const found: Violation[] = [];
  const refuse = (message: string, field: string): void => {
    found.push(violation('INVALID_CONTROL_RECORD', message, field));
  };
  const owners = record.attestations.filter((each) => each.role === 'Owner');
  if (owners.length !== 1) refuse('There is not exactly one owner', 'attestations');
  const subjects = new Set(record.attestations.map((each) => each.subject));
  if (subjects.size !== record.attestations.length) refuse('A subject is there twice', 'attestations');
  for (const [index, entry] of record.attestations.entries()) {
    if (!verifyRosterEntry(record, entry, verifier)) {
      found.push(
        violation('ATTESTATION_INVALID', 'The attestation does not verify', `attestations.${index}`),
      );
    }
  }
  const members = initialValidators(record);
  const distinct = [
    new Set(members.map((each) => each.validatorId)),
    new Set(members.map((each) => each.publicKey)),
  ];
  if (members.length === 0 || distinct.some((set) => set.size !== members.length)) {
    refuse('Validators are missing or repeated', 'validators');
  }
  if (record.validators.requiredSignatures < quorum(members.length)) {
    refuse('requiredSignatures is below the quorum', 'validators.requiredSignatures');
  }
  for (const [index, entry] of record.validators.validators.entries()) {
    const signs = entry.derivationContext === DOCKET_SIGNING;
    if (!signs || !verifyValidatorEntry(record, entry, verifier)) {
      refuse('The proof of possession does not verify', `validators.validators.${index}`);
    }
  }
  return found;
}

/** The envelope of a genesis transaction (specification document 2, section 2). */
export function genesisEnvelope(facts: GenesisFacts): TransactionEnvelope {
  return {
    registerId: facts.record.registerId,
    blueprintId: GENESIS_BLUEPRINT,
    actionId: GENESIS_ACTION,
    type: 'Genesis',
    payloadHash: facts.payloadHash,
    createdAt: facts.createdAt,
    metadata: {
      Type: 'Genesis',
      RegisterName: facts.record.name,
      TenantId: facts.organizationId,
      SystemWalletAddress: facts.systemWalletAddress,
      instanceOf: 'register-creation-v1',
    },
  };
}

/** The genesisConfig of docket 0: canonical JSON text, derived from the control record and the installation. */
export function genesisConfigText(record: ControlRecord, networkId: string): string {
  return canonicalJson({
    registerName: record.name,
    creatorAddress: creatorAddress(record),
    initialValidators: initialValidators(record).map((each) => each.validatorId),
    policyVersion: record.registerPolicy.version,
    cryptoPolicyVersion: record.cryptoPolicy.version,
    protocol: 'bft-1',
    networkId,
  });
}
