import { z } from 'zod';
import { readableText } from '#core/encoding/readable.ts';
import { registerIdSchema, txIdSchema } from '../identifiers.ts';

const text = z.string();
const time = text.describe('ISO 8601, UTC.');
export const instanceStates = ['Pending', 'Active', 'Completed', 'Failed'] as const;

const scalar = z.union([z.string().max(1_000), z.number(), z.boolean()]);
const maxMetadata = 32;

export const createBody = z.strictObject({
  blueprintId: z.string().min(1).max(64),
  registerId: registerIdSchema,
  publicationTxId: txIdSchema.describe('The publication; the latest sealed one when absent.').optional(),
  participantWallets: z
    .record(z.string().min(1).max(64), z.string().max(100))
    .refine((wallets) => Object.keys(wallets).length <= 32, 'at most 32 participants')
    .default({})
    .describe('Wallets of open participants that do not start the workflow.'),
  tenantId: z.string().min(1).max(100).optional().describe('The organisation of the token when absent.'),
  metadata: z
    .record(z.string().min(1).max(100), scalar)
    .refine((members) => Object.keys(members).length <= maxMetadata, `at most ${maxMetadata} members`)
    .default({}),
});

export const createExample = {
  blueprintId: 'site-permit-approval',
  registerId: '0123456789abcdef0123456789abcdef',
  metadata: { source: 'counter' },
} as const;

const branchSchema = z.object({
  id: text,
  currentActionId: z.int(),
  state: z.enum(['Active', 'Completed', 'TimedOut', 'Rejected']),
  deadline: text.optional(),
  sourceActionId: z.int(),
  sourceRouteId: text,
  lastTransactionId: text,
});

export const instanceSchema = z
  .object({
    id: text,
    instanceId: text,
    ledgerInstanceId: text.nullable().describe('Follows from the first transaction.'),
    blueprintId: text,
    blueprintDefinitionTxId: text.describe('The publication that the instance runs by.'),
    blueprintExecDefHash: text.nullable(),
    blueprintVersion: z.int().nullable().describe('Ordinal of the publication, for display.'),
    registerId: text,
    state: z.enum(instanceStates),
    stateReason: text.nullable(),
    currentActionIds: z.array(z.int()),
    participantWallets: z.record(text, text),
    activeBranches: z.array(branchSchema),
    firstTransactionId: text.nullable(),
    lastTransactionId: text.nullable(),
    completedActionCount: z.int(),
    createdAt: time,
    updatedAt: time,
    completedAt: time.nullable(),
    tenantId: text,
    metadata: z.record(text, scalar),
    instanceReference: text.nullable(),
    version: z.int().describe('Number of steps.'),
  })
  .meta({ id: 'WorkflowInstance' });

export const instanceListSchema = z
  .object({
    items: z.array(instanceSchema),
    totalCount: z.int(),
    pageNumber: z.int(),
    pageSize: z.int(),
  })
  .meta({ id: 'WorkflowInstances' });

export const nextActionsSchema = z
  .array(
    z.object({
      actionId: z.int(),
      title: text,
      participantId: text,
      branchKey: text.optional(),
      dueAt: text.optional(),
      isBlockedBy: z.array(z.int()),
    }),
  )
  .meta({ id: 'NextActions' });

const json = z.unknown();

export const actionDetailSchema = z
  .object({
    instanceId: text,
    actionId: z.int(),
    title: text,
    description: text.nullable(),
    instructions: text.nullable(),
    participantId: text,
    isCurrent: z.boolean(),
    isBlockedBy: z.array(z.int()),
    dataSchemas: z.array(json),
    form: json.nullable(),
    disclosures: z.array(json),
    credentialRequirements: z.array(json),
    rejection: z.object({ allowed: z.boolean(), requireReason: z.boolean(), schema: json.nullable() }),
    calculationNames: z.array(text),
    blueprintDefinitionTxId: text,
  })
  .meta({ id: 'ActionDetail' });

export const ownActionSchema = actionDetailSchema
  .extend({
    prefill: z
      .record(text, json)
      .nullable()
      .describe(
        'For the wallet that takes the action while it is current: data of the step before, over which your submission ' +
          'is laid. Null when it cannot be opened.',
      ),
  })
  .meta({ id: 'OwnActionDetail' });

export const definitionSchema = z
  .object({
    instanceId: text,
    blueprintId: text,
    blueprintDefinitionTxId: text,
    blueprintExecDefHash: text.nullable(),
    blueprintVersion: z.int().nullable(),
    isPinnedToLatest: z.boolean().nullable(),
    pinState: z.enum(['pinned', 'unresolvable']),
  })
  .meta({ id: 'InstanceDefinition' });

export const cancelBody = z.strictObject({ reason: readableText.max(1_000).optional() });
