import { z } from 'zod';
import { VALIDATOR_STATUSES } from '#core/ledger/governance/rules.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import { policySchema } from '../../governance/policy/schemas.ts';
import { proposalSchema } from '../../governance/proposals/schemas.ts';
import { registerPurposes } from '../state/store.ts';
import { VALIDATION_STATES } from './validation.ts';

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');
const count = z.int();

/** States of a register, as its resource shows them. */
const phases = [
  'Pending',
  'AwaitingAttestations',
  'GenesisSubmitted',
  'Checking',
  'Online',
  'Recovering',
  'Halted',
  'Deleting',
  'Deleted',
] as const;
export type Phase = (typeof phases)[number];

const deletionSchema = z
  .object({
    policy: z.enum(['Tombstone', 'Purge']),
    deletedAt: instant,
    purgeAfter: instant.nullable(),
    purgedAt: instant.nullable(),
  })
  .meta({ id: 'RegisterDeletion' });
export type PresentedDeletion = z.output<typeof deletionSchema>;

export const releasedSchema = z.object({
  registerId: text.nullable(),
  deletion: deletionSchema.nullable(),
});

/** Facts of the ledger, or of the draft before the register begins. */
const factsSchema = z.object({
  title: text.nullable(),
  description: text.nullable(),
  purpose: z.enum(registerPurposes),
  devMode: z.boolean().nullable(),
  metadata: z.record(z.string(), z.string()),
  createdAt: instant.nullable(),
  genesisTransactionId: text.nullable(),
  height: count.describe('Number of sealed dockets.'),
  headHash: text.nullable(),
  lastSealedTime: instant.nullable(),
  policyVersion: count.nullable(),
  policy: policySchema.nullable(),
});

const pendingAttestationSchema = z.object({
  walletAddress: text.describe('Address of the key that signs.'),
  role: z.enum(ROSTER_ROLES),
  dataToSign: text.describe('The 32 bytes to sign, in hex.'),
  expiresAt: instant.nullable(),
});

const pendingProposalSchema = proposalSchema
  .pick({ proposalId: true, operationType: true, status: true, proposerDid: true })
  .extend({
    target: text.nullable(),
    votesReceived: count,
    votesRequired: count,
    votedByOperator: z.boolean(),
    expiresAt: instant,
    operation: proposalSchema.shape.operation,
  });

const validatorsSchema = z.object({
  members: z.array(
    z.object({
      validatorId: text,
      status: z.enum(VALIDATOR_STATUSES),
      publicKey: text.describe('Base64.'),
      operational: z.boolean(),
      lastHeartbeat: instant.nullable(),
    }),
  ),
  size: count,
  quorum: count,
  faultTolerance: count,
  operational: count,
  reachable: count,
});

/** Live state of a register, from the ledger and its validators. */
const liveSchema = z.object({
  genesisHash: text.nullable(),
  cryptoPolicyVersion: count.nullable(),
  roster: z.array(z.object({ did: text, walletAddress: text.nullable(), role: z.enum(ROSTER_ROLES) })),
  operatorRole: z.enum(ROSTER_ROLES).nullable(),
  pendingProposals: z.array(pendingProposalSchema),
  outstanding: z
    .array(z.object({ change: text, txId: text, submittedAt: instant.nullable() }))
    .describe('Changes that are not sealed yet.'),
  validators: validatorsSchema,
  validation: text.nullable().describe('Running, Paused, Stopped, Halted or WaitingForValidators.'),
  haltedReason: text.nullable(),
  equivocation: z.array(
    z.object({ kind: text, validatorIds: z.array(text), height: count, seenAt: instant }),
  ),
  sync: z.object({
    status: z.enum(['Synced', 'Syncing']),
    currentDocket: count,
    targetDocket: count,
    progressPercent: count,
    isStale: z.boolean(),
  }),
  mempool: z.object({ pending: count }),
});
export type LiveState = z.output<typeof liveSchema>;

/** The complete status of the register of a custom resource. */
export const statusSchema = z
  .object({
    uid: text.nullable(),
    registerId: text,
    phase: z.enum(phases),
    organizationId: text.nullable(),
    ...factsSchema.shape,
    pendingAttestations: z.array(pendingAttestationSchema),
    ...liveSchema.shape,
    replicatedElsewhere: z.boolean(),
    deletion: deletionSchema.nullable(),
  })
  .meta({ id: 'ManagedRegister' });

/** Kinds of changes of a managed register. */
const changes = [
  'metadata',
  'policy',
  'devModeOff',
  'addValidator',
  'removeValidator',
  'rotateValidatorKey',
  'addMember',
  'removeMember',
  'changeRole',
  'vote',
] as const;

/** A submitted change, as the operator reads it. */
export const submittedSchema = z
  .object({
    registerId: text,
    change: z.enum(changes),
    status: z.enum(['voting', 'submitted']),
    txId: text,
    proposalId: text.nullable(),
    votesReceived: count.nullable(),
    votesRequired: count.nullable(),
  })
  .meta({ id: 'SubmittedManagedChange' });
export type SubmittedManagedChange = z.output<typeof submittedSchema>;

export const validationSchema = z.object({
  registerId: text,
  validation: z.enum(VALIDATION_STATES),
  reachable: count,
  failed: z.array(text).describe('Validators that cannot be reached.'),
});

export const missingSchema = z.object({
  registerId: text,
  missing: z.array(z.object({ walletAddress: text, role: z.enum(ROSTER_ROLES) })),
});

export const organizationCountSchema = z.object({ organizationId: text, count });
