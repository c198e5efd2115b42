import { z } from 'zod';
import { isJsonObject, type JsonObject } from '#core/encoding/json.ts';
import { readableLine, readableName, readableText } from '#core/encoding/readable.ts';
import { INLINE_LIMITS } from '../files/inline.ts';
import { registerIdSchema, txIdSchema } from '../identifiers.ts';

const text = z.string();
const time = text.describe('ISO 8601, UTC.');

const actionId = z
  .union([z.int().min(0).max(1_000_000), text.regex(/^(0|[1-9][0-9]{0,6})$/)])
  .transform(Number)
  .describe('The action, decimal digits.');
const instanceId = z.uuid().transform((id) => id.toLowerCase());
const senderWallet = text.min(1).max(100).describe('Address of your wallet that signs.');
const branchKey = text.min(1).max(1_000).optional();
const object = z.custom<JsonObject>(isJsonObject, 'an object');

const maxExternalKeys = 64;
const externalRecipientKeys = z
  .record(
    text.min(1).max(100),
    z.strictObject({
      publicKey: text.max(1_000).describe('Base64.'),
      algorithm: z.enum(['ED25519', 'NISTP256', 'X25519', 'RSA']),
    }),
  )
  .refine((keys) => Object.keys(keys).length <= maxExternalKeys, `at most ${maxExternalKeys} keys`)
  .default({})
  .describe('Keys of recipients that neither the register nor this installation knows, by wallet.');

const inlineFile = z.strictObject({
  fileName: readableName
    .max(255)
    .refine((name) => !/[/\\]/.test(name), 'write a name without a path')
    .describe('Unique in the request.'),
  contentType: readableLine.min(1).max(255),
  contentBase64: text.describe('Base64 of at most 1 MiB.'),
});

const files = z
  .array(inlineFile)
  .max(INLINE_LIMITS.files)
  .default([])
  .describe(
    'Files of at most 6 MiB together. The reference of a file takes the place of `{"fileName": NAME}` where a field of ' +
      'payloadData is declared with `x-file`; a single file needs no such object when only one field is.',
  );

const shared = {
  senderWallet,
  previousTransactionHash: txIdSchema
    .nullish()
    .describe('Refused unless it is the last transaction of the instance; null for the first action.'),
  payloadData: object,
  files,
  branchKey,
  externalRecipientKeys,
};

export const executeBody = z.strictObject({
  ...shared,
  blueprintId: text.max(64).optional(),
  actionId: actionId.optional(),
  instanceId: instanceId.optional(),
  registerAddress: registerIdSchema.optional(),
});

export const executeExample = {
  senderWallet: 'w1qdf3q6tl433zl3al00lzv4uqgyy0lucqpq2nf2tsv9txnyqjgr3ss2uttek',
  payloadData: { decision: 'approved' },
} as const;

export const submitBody = z.strictObject({
  ...shared,
  blueprintId: text.min(1).max(64),
  actionId,
  instanceId: instanceId.nullish().describe('Absent: the action begins a new instance.'),
  registerAddress: registerIdSchema,
});

export const submitExample = {
  ...executeExample,
  blueprintId: 'site-permit-approval',
  actionId: '2',
  instanceId: '0190a5b2-7c3d-7e4f-8a1b-2c3d4e5f6a7b',
  registerAddress: '0123456789abcdef0123456789abcdef',
} as const;

const nextActions = z.array(z.object({ actionId: z.int(), participantId: text, branchKey: text.optional() }));

export const resultSchema = z
  .object({
    accepted: z.literal(true),
    pending: z.literal('awaiting-seal').optional().describe('Present until the transaction is sealed.'),
    operationId: text,
    transactionHash: text,
    instanceId: text,
    serializedTransaction: text.describe('JSON text of the submitted transaction.'),
    fileTransactionHashes: z.array(text).describe('Ids of the first chunks of the files.'),
    timestamp: time,
    nextActions,
    calculations: z.record(text, z.unknown()),
    isComplete: z.boolean(),
    warnings: z.array(text),
  })
  .meta({ id: 'ActionResult' });

export const operationStartedSchema = z
  .object({
    operationId: text,
    isAsync: z.literal(true),
    instanceId: text,
    transactionHash: text.nullable(),
  })
  .meta({ id: 'OperationStarted' });

const maxFieldErrors = 100;
const reason = readableText.min(1).max(1_000);
export const fieldErrors = z
  .record(text.max(500), text.max(500))
  .refine((errors) => Object.keys(errors).length <= maxFieldErrors, `at most ${maxFieldErrors} texts`)
  .optional()
  .describe('What is wrong with single values, by JSON Pointer.');

export const rejectBody = z.strictObject({
  reason: reason.optional(),
  fieldErrors,
  branchKey,
  data: object.default({}).describe('What the rejection schema of the action takes.'),
  senderWallet: senderWallet.optional(),
});

export const rejectExample = { reason: 'The floor area is not that of the plans.' } as const;

export const rejectByTransactionBody = z.strictObject({
  transactionHash: txIdSchema,
  reason: reason.optional(),
  senderWallet,
  registerAddress: registerIdSchema,
  fieldErrors,
});
