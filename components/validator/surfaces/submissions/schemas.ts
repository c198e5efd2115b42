import { z } from 'zod';
import { problemSchema } from '#kit/http/http.ts';

const text = z.string();

/** Of the reference only: the exact text is parsed, because the payload hash covers it. */
export const submissionSchema = z.object({
  TransactionId: text.describe('64 hexadecimal characters'),
  RegisterId: text.describe('32 hexadecimal characters'),
  BlueprintId: text.optional(),
  ActionId: text.optional(),
  Payload: z.unknown().describe('Any JSON value'),
  PayloadHash: text.describe('SHA-256 of the canonical or minified payload, hexadecimal'),
  Signatures: z.array(z.object({ PublicKey: text, SignatureValue: text, Algorithm: text })),
  CreatedAt: text.describe('ISO 8601 with an offset'),
  ExpiresAt: text.optional(),
  PreviousTransactionId: text.optional(),
  Priority: z.union([text, z.int()]).optional(),
  Metadata: z.record(text, text).optional(),
  Recipients: z.array(text).optional(),
});

export const submissionExample: z.input<typeof submissionSchema> = {
  TransactionId: '7c1d9a4e5f60718293a4b5c6d7e8f90112233445566778899aabbccddeeff001',
  RegisterId: '0123456789abcdef0123456789abcdef',
  Payload: { order: 1042, state: 'shipped' },
  PayloadHash: 'b4a2f1c08d7e6f5a493827161504f3e2d1c0b9a8978685746352413f2e1d0c9b',
  Signatures: [
    {
      PublicKey: '11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
      SignatureValue:
        '5VZDAMNgrHKQhuLMgG6CioSHfx645dl02HPgZSJJAVVfuIIVkKM7rMYeOXAc+bRr0lv18FlbviRlUUFDjnoQCw==',
      Algorithm: 'ED25519',
    },
  ],
  CreatedAt: '2026-05-04T10:15:30.000Z',
  Metadata: { Type: 'Action' },
};

export const acceptedSchema = z
  .object({
    isValid: z.literal(true),
    added: z.boolean().describe('false for an identical submission that was accepted before'),
    alreadyKnown: z.literal(true).optional(),
    transactionId: text,
    registerId: text,
    addedAt: text.describe('ISO 8601, UTC.'),
  })
  .meta({ id: 'AcceptedTransaction' });

const acceptedResult = acceptedSchema.extend({ status: z.literal(200) });
const refusedResult = problemSchema
  .omit({ traceId: true })
  .extend({ retryAfterSeconds: z.int().optional().describe('absent where a repetition is pointless') });

export const batchResultSchema = z.object({
  accepted: z.int().describe('How many are verified and on disk'),
  refused: z.int(),
  results: z
    .array(z.union([acceptedResult, refusedResult]))
    .describe('In the order of the lines: status and body as POST /api/v1/transactions/validate gives them'),
});
