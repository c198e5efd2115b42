import { z } from 'zod';
import { ALGORITHMS, type Algorithm } from '../../crypto/algorithm.ts';
import { sha256Hex } from '../../crypto/hash.ts';
import { normalisePublicKey } from '../../crypto/public-key.ts';
import { canonicalBytes, canonicalJson } from '../../encoding/jcs.ts';
import { findTimestamp } from '../../encoding/timestamp.ts';
import { isAppError } from '../../errors/errors.ts';
import { type CryptoPolicy, cryptoPolicySchema } from '../control-record.ts';
import { findMemberAddress } from '../did.ts';
import { ROSTER_ROLES } from '../owner-attestation.ts';

/** Types of operations that a roster decides on. */
export const OPERATION_TYPES = [
  'add-member',
  'remove-member',
  'transfer-ownership',
  'change-role',
  'add-validator',
  'remove-validator',
  'rotate-validator-key',
  'suspend-validator',
  'policy-update',
  'crypto-policy-update',
] as const;
export type OperationType = (typeof OPERATION_TYPES)[number];

export const PROPOSAL_STATUSES = ['Pending', 'Approved', 'Rejected', 'Expired', 'Recorded'] as const;
export type ProposalStatus = (typeof PROPOSAL_STATUSES)[number];
export const TRANSITION_MODES = ['immediate', 'grace-period'] as const;

export const GOVERNANCE_PAYLOAD_VERSION = 2;
const APPROVAL_DOMAIN = 'platform:governance-approval:v1';
const OPERATION_DOMAIN = 'platform:governance-operation:v1';
const SUSPENSION_DOMAIN = 'platform:governance-suspension:v1';
const MAX_APPROVALS = 50;
/** Open proposals are part of the rules that every member holds, so the size of an operation is limited. */
export const MAX_OPERATION_BYTES = 32_768;

function isKey(algorithm: Algorithm, text: string): boolean {
  try {
    return normalisePublicKey(algorithm, text) === text;
  } catch (error) {
    if (isAppError(error, 'invalid')) return false;
    throw error;
  }
}

const text = z.string().min(1).max(1024);
const memberDid = z.string().refine((did) => findMemberAddress(did) !== undefined, 'is not a member DID');
const validatorId = z.string().regex(/^[A-Za-z0-9._-]{1,128}$/);
const hash = z.string().regex(/^[0-9a-f]{64}$/);
const timestampSchema = z
  .string()
  .max(64)
  .refine((value) => findTimestamp(value) !== undefined, 'is not a timestamp');

const keyFields = { publicKey: text, algorithm: z.enum(ALGORITHMS) };
const keyForm = (key: { publicKey: string; algorithm: Algorithm }): boolean =>
  isKey(key.algorithm, key.publicKey);
const keyProblem = { path: ['publicKey'], message: 'is not a key in the canonical key form' };

/** A key in exactly the canonical form, because it is hashed and compared. */
const keySchema = z.strictObject(keyFields).refine(keyForm, keyProblem);

/** A candidate validator with its proof of possession. */
export const validatorEntrySchema = z
  .strictObject({ validatorId, ...keyFields, proofOfPossession: text })
  .refine(keyForm, keyProblem);
export type ValidatorEntry = z.output<typeof validatorEntrySchema>;

/** One vote on an operation, signed over approvalBytes. Time and comment are not covered. */
export const approvalSchema = z
  .strictObject({
    approverDid: memberDid,
    signature: text,
    isApproval: z.boolean(),
    votedAt: timestampSchema.optional(),
    comment: z.string().max(500).optional(),
  })
  .meta({ id: 'GovernanceApproval' });
export type Approval = z.output<typeof approvalSchema>;

const signedMessageSchema = z.strictObject({
  polRound: z.int().min(-1),
  docket: z.strictObject({ docketHash: hash, merkleRoot: hash, logRoot: hash }).optional(),
  validatorSetHash: hash,
  timestamp: text,
  signature: text,
});

/** Evidence for a suspension. Two conflicting messages prove a fault; the roster judges missed slots. */
export const evidenceSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('double-sign'),
    networkId: text,
    /** 1 proposal, 2 prevote, 3 precommit. */
    type: z.union([z.literal(1), z.literal(2), z.literal(3)]),
    height: z.int().min(0),
    round: z.int().min(0),
    first: signedMessageSchema,
    second: signedMessageSchema,
  }),
  z.strictObject({ kind: z.literal('missed-slots'), dockets: z.array(z.int().min(1)).min(10).max(100) }),
]);
export type Evidence = z.output<typeof evidenceSchema>;

const cryptoPolicy: z.ZodType<CryptoPolicy> = cryptoPolicySchema;

const common = {
  proposerDid: memberDid,
  proposedAt: timestampSchema,
  expiresAt: timestampSchema.optional(),
  justification: z.string().max(500).optional(),
  status: z.enum(PROPOSAL_STATUSES).optional(),
  approvalSignatures: z.array(approvalSchema).max(MAX_APPROVALS).optional(),
};

/** The operation of a control transaction, exactly as it is hashed: parsing neither fills in nor changes anything. */
export const operationSchema = z.discriminatedUnion('operationType', [
  z.strictObject({
    operationType: z.literal('add-member'),
    ...common,
    targetDid: memberDid,
    targetRole: z.enum(ROSTER_ROLES),
    targetKey: keySchema,
  }),
  z.strictObject({ operationType: z.literal('remove-member'), ...common, targetDid: memberDid }),
  z.strictObject({ operationType: z.literal('transfer-ownership'), ...common, targetDid: memberDid }),
  z.strictObject({
    operationType: z.literal('change-role'),
    ...common,
    targetDid: memberDid,
    targetRole: z.enum(ROSTER_ROLES),
  }),
  z.strictObject({
    operationType: z.literal('add-validator'),
    ...common,
    validatorEntry: validatorEntrySchema,
  }),
  z.strictObject({ operationType: z.literal('remove-validator'), ...common, validatorId }),
  z.strictObject({
    operationType: z.literal('rotate-validator-key'),
    ...common,
    validatorEntry: validatorEntrySchema,
  }),
  z.strictObject({
    operationType: z.literal('suspend-validator'),
    ...common,
    validatorId,
    evidence: evidenceSchema.optional(),
  }),
  z.strictObject({
    operationType: z.literal('policy-update'),
    ...common,
    policy: z.record(z.string(), z.unknown()),
    transitionMode: z.enum(TRANSITION_MODES).optional(),
  }),
  z.strictObject({
    operationType: z.literal('crypto-policy-update'),
    ...common,
    cryptoPolicy,
  }),
]);
export type Operation = z.output<typeof operationSchema>;

/** An operation in a payload: with its approvals, or as a proposal. */
export const operationPayloadSchema = z.strictObject({
  version: z.literal(GOVERNANCE_PAYLOAD_VERSION),
  operation: operationSchema,
  rosterHashBefore: hash,
  rosterHashAfter: hash,
});
export type OperationPayload = z.output<typeof operationPayloadSchema>;

interface ApprovalFacts {
  readonly registerId: string;
  readonly approverDid: string;
  readonly isApproval: boolean;
  readonly operation: Operation;
  readonly rosterHashBefore: string;
}

/** The operation without the members that change while it is decided on: its status and the approvals. */
function decided(operation: Operation): Omit<Operation, 'status' | 'approvalSignatures'> {
  const { status: _status, approvalSignatures: _approvals, ...rest } = operation;
  return rest;
}

/** The bytes that an approval signs: canonical JSON, of which the SHA-256 is signed like any pre-hash. */
export function approvalBytes(facts: ApprovalFacts): Uint8Array {
  return canonicalBytes({
    domain: APPROVAL_DOMAIN,
    registerId: facts.registerId,
    approverDid: facts.approverDid,
    decision: facts.isApproval ? 'approve' : 'reject',
    operation: decided(facts.operation),
    rosterHashBefore: facts.rosterHashBefore,
  });
}

/** The 32 bytes of an approval as 64 lower-case hexadecimal characters: `dataToSign` of an approver. */
export function approvalDigest(facts: ApprovalFacts): string {
  return sha256Hex(approvalBytes(facts));
}

/** Identity of an operation on a register: an operation is enacted once, whichever transaction carries it. */
export function operationId(registerId: string, operation: Operation, rosterHashBefore: string): string {
  return sha256Hex(
    canonicalJson({
      domain: OPERATION_DOMAIN,
      registerId,
      operation: decided(operation),
      rosterHashBefore,
    }),
  );
}

/** The period for which one suspension may be proposed by observers. */
interface SuspensionTerm {
  readonly registerId: string;
  readonly validatorId: string;
  /** First docket for which the present status and key of the accused count. */
  readonly effectiveFromDocket: number;
  readonly rosterHashBefore: string;
}

/**
 * Identity of the suspension of a validator for double signing. It is recorded among the enacted operations: several
 * members see the same fault, and a rejected proposal is not repeated for the next one.
 */
export function suspensionId(term: SuspensionTerm): string {
  const { registerId, validatorId, effectiveFromDocket, rosterHashBefore } = term;
  return sha256Hex(
    canonicalJson({
      domain: SUSPENSION_DOMAIN,
      registerId,
      validatorId,
      effectiveFromDocket,
      rosterHashBefore,
    }),
  );
}
