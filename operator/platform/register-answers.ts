import { z } from 'zod';
import { type Aggregate, LEDGER_PHASES, type RegisterFacts } from '../plan/register/facts.ts';

const text = z.string().max(8192);
const optional = <S extends z.ZodType>(schema: S) =>
  schema.nullish().transform((value) => value ?? undefined);
const count = z.int().min(0);
const list = <S extends z.ZodType>(schema: S, max = 1000) => z.array(schema).max(max);

const aggregates: Readonly<Record<string, Aggregate>> = {
  metadata: 'metadata',
  policy: 'policy',
  devModeOff: 'devMode',
  addValidator: 'validators',
  removeValidator: 'validators',
  rotateValidatorKey: 'validators',
  addMember: 'members',
  removeMember: 'members',
  changeRole: 'members',
};

const proposal = z.object({
  proposalId: text,
  operationType: text,
  votesReceived: count,
  votesRequired: count,
  votedByOperator: z.boolean().default(false),
  expiresAt: optional(text),
});

const validator = z.object({
  validatorId: text,
  status: z.enum(['Active', 'Pending', 'Suspended', 'Removed']),
  operational: z.boolean(),
});

const sync = z.object({
  status: text,
  currentDocket: count,
  targetDocket: count,
  progressPercent: z.number().min(0).max(100).transform(Math.floor),
  isStale: z.boolean(),
});

/** The status of a register in the register service. */
export const statusSchema = z
  .object({
    registerId: text,
    phase: z.enum(LEDGER_PHASES),
    organizationId: optional(text),
    title: optional(text).transform((value) => value ?? ''),
    description: optional(text),
    devMode: optional(z.boolean()).transform((value) => value ?? false),
    metadata: z.record(z.string(), text),
    genesisTransactionId: optional(text),
    genesisHash: optional(text),
    height: count,
    headHash: optional(text),
    lastSealedTime: optional(text),
    pendingAttestations: list(
      z.object({ walletAddress: text, role: text, dataToSign: text, expiresAt: optional(text) }),
    ),
    roster: list(z.object({ walletAddress: optional(text).transform((value) => value ?? ''), role: text })),
    operatorRole: optional(text),
    policyVersion: optional(count).transform((value) => value ?? 0),
    policy: optional(z.record(z.string(), z.unknown())).transform((value) => value ?? {}),
    pendingProposals: list(proposal),
    outstanding: list(z.object({ change: text, txId: text })),
    validators: z.object({
      members: list(validator),
      size: count,
      quorum: count,
      faultTolerance: count,
      operational: count,
    }),
    validation: optional(z.enum(['Running', 'Paused', 'Stopped', 'Halted', 'WaitingForValidators'])),
    haltedReason: optional(text),
    sync: optional(sync),
    mempool: optional(z.object({ pending: count })),
    replicatedElsewhere: z.boolean().default(false),
    deletion: optional(z.object({ policy: z.enum(['Tombstone', 'Purge']) })),
  })
  .transform(
    ({ pendingProposals, outstanding, mempool, replicatedElsewhere, ...same }): RegisterFacts => ({
      ...same,
      proposals: pendingProposals,
      outstanding: outstanding.map(({ change, txId }) => ({ aggregate: aggregates[change], txId })),
      pendingTransactions: mempool?.pending ?? 0,
      isReplicatedElsewhere: replicatedElsewhere,
    }),
  );

/** Response to a change. */
export const changedSchema = z.object({ txId: optional(text), proposalId: optional(text) });

/** Response to a change of the validation state. */
export const actedSchema = z.object({ registerId: text });

/** Response to a removal. */
export const removedSchema = z.object({ registerId: optional(text) });

/** Response to a count. */
export const countSchema = z.object({ count });
