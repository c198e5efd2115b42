import { z } from 'zod';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import type { OperationFailure } from '../database/operation-tables.ts';

/** What an operation is doing: number and name of the step, and percent done (specification document 3, section 3). */
export const progress = {
  Pending: { currentStep: 0, stepName: 'Queued', percent: 0 },
  ResolvingKeys: { currentStep: 1, stepName: 'Resolving recipient keys', percent: 10 },
  Encrypting: { currentStep: 2, stepName: 'Encrypting payloads', percent: 30 },
  BuildingTransaction: { currentStep: 3, stepName: 'Building transaction', percent: 70 },
  Submitting: { currentStep: 4, stepName: 'Submitting to register', percent: 85 },
  Complete: { currentStep: 4, stepName: 'Done', percent: 100 },
} as const;

export const totalSteps = 4;

export type RunningStatus = Exclude<keyof typeof progress, 'Complete'>;
export const operationStatuses = [
  'Pending',
  'ResolvingKeys',
  'Encrypting',
  'BuildingTransaction',
  'Submitting',
  'Complete',
  'Failed',
] as const;
export type OperationStatus = (typeof operationStatuses)[number];

/** The key of a recipient that no record and no wallet here names. */
export interface ExternalKey {
  /** Base64. */
  readonly publicKey: string;
  readonly algorithm: 'ED25519' | 'NISTP256' | 'X25519' | 'RSA';
}

/** What a person submitted; sealed until the operation ends. */
export interface OperationInput {
  /** Of an action: its payload; of a rejection: what its schema takes. */
  readonly data: JsonObject;
  readonly externalRecipientKeys: Readonly<Record<string, ExternalKey>>;
  /** Of a rejection. */
  readonly reason?: string | undefined;
  /** Of a rejection: texts by JSON Pointer. */
  readonly fieldErrors?: Readonly<Record<string, string>> | undefined;
}

/** What a sealed input is when it is opened. */
export const inputSchema = z.object({
  data: z.custom<JsonObject>(isJsonObject),
  externalRecipientKeys: z.record(
    z.string(),
    z.object({ publicKey: z.string(), algorithm: z.enum(['ED25519', 'NISTP256', 'X25519', 'RSA']) }),
  ),
  reason: z.string().optional(),
  fieldErrors: z.record(z.string(), z.string()).optional(),
});

/** A step that is asked for. */
export interface StepTask {
  readonly kind: 'Action' | 'Rejection';
  readonly registerId: string;
  readonly instanceId: string;
  readonly actionId: number;
  /** Address of the sender. */
  readonly wallet: string;
}

export interface Operation extends StepTask {
  readonly id: string;
  readonly blueprintId: string;
  readonly actionTitle: string;
  readonly owner: string;
  readonly organizationId: string | undefined;
  readonly status: OperationStatus;
  readonly currentStep: number;
  readonly percent: number;
  readonly recipientCount: number;
  readonly warnings: readonly string[];
  readonly txId: string | undefined;
  readonly isAccepted: boolean;
  readonly failure: OperationFailure | undefined;
  readonly createdAt: Date;
  readonly completedAt: Date | undefined;
}

/** An operation with what its runner works on. */
export interface LeasedOperation extends Operation {
  readonly sealedInput: Buffer | undefined;
  readonly sealedDelegation: Buffer | undefined;
  readonly delegationExpiresAt: Date;
  readonly draft: Buffer | undefined;
  readonly submission: Buffer | undefined;
  readonly expiresAt: Date | undefined;
  readonly forks: number;
  readonly attempts: number;
}
