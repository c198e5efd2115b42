import { z } from 'zod';
import { type Aggregate, LEDGER_PHASES, type RegisterFacts } from '../plan/register/facts.ts';

const text = z.string().max(8192);
const maybe = <S extends z.ZodType>(schema: S) => schema.nullish().transform((value) => value ?? undefined);
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
  expiresAt: maybe(text),
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

/** What the register service says of a register. */
export const statusSchema = z
  .object({
    registerId: text,
    phase: z.enum(LEDGER_PHASES),
    organizationId: maybe(text),
    title: maybe(text).transform((value) => value ?? ''),
    description: maybe(text),
    devMode: maybe(z.boolean()).transform((value) => value ?? false),
    metadata: z.record(z.string(), text),
    genesisTransactionId: maybe(text),
    genesisHash: maybe(text),
    height: count,
    headHash: maybe(text),
    lastSealedTime: maybe(text),
    pendingAttestations: list(
      z.object({ walletAddress: text, role: text, dataToSign: text, expiresAt: maybe(text) }),
    ),
    roster: list(z.object({ walletAddress: maybe(text).transform((value) => value ?? ''), role: text })),
    operatorRole: maybe(text),
    policyVersion: maybe(count).transform((value) => value ?? 0),
    policy: maybe(z.record(z.string(), z.unknown())).transform((value) => value ?? {}),
    pendingProposals: list(proposal),
    outstanding: list(z.object({ change: text, txId: text })),
    validators: z.object({
      members: list(validator),
      size: count,
      quorum: count,
      faultTolerance: count,
      operational: count,
    }),
    validation: maybe(z.enum(['Running', 'Paused', 'Stopped', 'Halted', 'WaitingForValidators'])),
    haltedReason: maybe(text),
    sync: maybe(sync),
    mempool: maybe(z.object({ pending: count })),
    replicatedElsewhere: z.boolean().default(false),
    deletion: maybe(z.object({ policy: z.enum(['Tombstone', 'Purge']) })),
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

/** Answer of a change. */
export const changedSchema = z.object({ txId: maybe(text), proposalId: maybe(text) });

/** Answer of a change of the validation. */
export const actedSchema = z.object({ registerId: text });

/** Answer of a removal. */
export const removedSchema = z.object({ registerId: maybe(text) });

/** Answer to how many there are. */
export const countSchema = z.object({ count });
