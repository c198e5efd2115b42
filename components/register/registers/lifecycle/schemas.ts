import { z } from 'zod';
import { registerPurposes, registerStatuses } from '../state/store.ts';

const text = z.string();
const instant = text.describe('ISO 8601, UTC.');

/** A register in answers. */
export const registerSchema = z
  .object({
    id: text.describe('The same as registerId.'),
    registerId: text,
    title: text,
    description: text.optional(),
    purpose: z.enum(registerPurposes),
    status: z.enum(registerStatuses),
    height: z.int().describe('Number of sealed dockets; the last one has the number height - 1.'),
    transactionCount: z.int(),
    devMode: z.boolean(),
    advertise: z.boolean(),
    sandbox: z.boolean(),
    isFullReplica: z.boolean(),
    syncState: text.nullable().describe('Null: this service has every docket.'),
    policyVersion: z.int(),
    validatorSetVersion: z.int(),
    networkId: text,
    genesisTransactionId: text,
    metadata: z.record(z.string(), z.string()),
    createdAt: instant,
    updatedAt: instant,
  })
  .meta({ id: 'Register' });
