import { z } from 'zod';
import type { ReadonlyDeep } from '#kit/http/http.ts';

const text = z.string();
const count = z.int().min(0);
const time = text.describe('ISO 8601, UTC.').nullable();

export const drainSchema = z
  .object({
    state: z.enum(['None', 'Draining', 'Drained']),
    since: time,
    waiting: count.describe('transactions from before the drain that are neither sealed nor dropped'),
    inFlight: count.describe('dockets proposed here and undecided, or decided and not stored'),
    alone: z.array(text).describe('registers whose only member this is: what waits there stays in its log'),
  })
  .meta({ id: 'ValidatorDrain' });

const evidenceSchema = z.object({
  kind: z.enum(['duplicate-proposal', 'duplicate-vote', 'conflicting-certificate']),
  validatorIds: z.array(text),
  height: count,
  seenAt: time,
});

const registerSchema = z.object({
  registerId: text,
  status: z.enum(['Running', 'Paused', 'Stopped', 'Halted', 'WaitingForValidators']),
  reason: text,
  membership: z.enum(['Active', 'Pending', 'Suspended', 'Removed', 'None']),
  isMember: z.boolean(),
  height: count.describe('number of the docket that is being decided'),
  storedHeight: count.describe('dockets that the register service is known to hold'),
  round: count,
  step: text,
  role: z.enum(['proposer', 'voter', 'observer']),
  proposer: text,
  isProposer: z.boolean(),
  quorum: count,
  members: z.array(text),
  operational: count.describe('members heard of within the time that the policy allows'),
  behind: count.describe('decided dockets that others have and this member has not'),
  mempool: z.object({ pending: count, bytes: count }),
  unstored: count,
  lastCommitAt: time,
  headHash: text,
  roots: z.array(z.object({ height: count, root: text })).describe('log roots of the latest heights'),
  evidence: z.array(evidenceSchema),
});

/** A register as this validator presents it. */
export type OwnRegister = ReadonlyDeep<z.output<typeof registerSchema>>;

export const validatorConsensusSchema = z.object({
  validatorId: text,
  did: text,
  walletAddress: text,
  publicKey: text,
  algorithm: text,
  version: text,
  protocolVersion: count,
  startedAt: time,
  endpoint: text,
  drain: drainSchema,
  conditions: z.array(z.object({ type: text, reason: text, message: text, since: time })),
  mempool: z.object({ bytes: count, maxBytes: count }),
  heard: z.array(z.object({ validatorId: text, heardAt: time })),
  registers: z.array(registerSchema),
});

export const modeOutcomeSchema = z.object({ registerId: text, status: text, changed: z.boolean() });
