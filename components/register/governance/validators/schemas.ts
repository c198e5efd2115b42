import { z } from 'zod';
import { ALGORITHMS } from '#core/crypto/algorithm.ts';
import { REGISTRATION_MODES } from '#core/ledger/policy.ts';
import { submittedFields, voteFields } from '../control/schemas.ts';
import { operationalSchema } from '../liveness/schemas.ts';

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');

/** Statuses of validators in answers. */
export const wireStatuses = ['pending', 'active', 'suspended', 'removed'] as const;

const validatorFields = {
  validatorId: text,
  did: text,
  publicKey: text.describe('Base64.'),
  algorithm: z.enum(ALGORITHMS),
  status: z.enum(wireStatuses),
  registeredAt: instant,
  approvedAt: instant.optional(),
  approvedBy: text.optional().describe('DID of the proposer, or genesis.'),
  effectiveFromDocket: z.int().describe('The first docket for which its status and key count.'),
  ejectAt: instant.optional().describe('When it is removed unless it is approved.'),
};

export const validatorSchema = z.object(validatorFields).meta({ id: 'RegisterValidator' });

export const validatorOfRegisterSchema = z.object({ registerId: text, ...validatorFields });

export const validatorsSchema = z
  .object({ registerId: text, validators: z.array(validatorSchema), count: z.int() })
  .meta({ id: 'RegisterValidators' });

export const approvedSchema = z.object({
  registerId: text,
  registrationMode: z.enum(REGISTRATION_MODES),
  validators: z.array(validatorSchema),
  count: z.int(),
  validatorSetVersion: z.int(),
  quorum: z.int().describe('Votes that decide a docket.'),
});

export const countsSchema = z.object({
  registerId: text,
  count: z.int().describe('Active validators.'),
  byStatus: z.record(z.string(), z.int()),
});

export const refreshedSchema = operationalSchema
  .extend({ refreshedAt: instant })
  .meta({ id: 'RefreshedValidators' });

export const registrationSchema = z.object({
  txId: text,
  registerId: text,
  validatorId: text,
  status: z.enum(['active', 'pending']).describe('Of the validator, once the docket is sealed.'),
  message: text,
});

/** A submitted change of the validator set. */
export const submittedChangeSchema = z
  .object({ ...submittedFields, validatorId: text, ...voteFields })
  .meta({ id: 'SubmittedSetChange' });
