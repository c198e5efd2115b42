import { z } from 'zod';
import { type App, callerOf, problemSchema } from '#kit/http/http.ts';
import { answerHeaders } from '../../intake/admission/answer.ts';
import { answerSubmission, originOf, type SubmissionDeps } from './answer-submission.ts';

const text = z.string();
/** Documentation of the body only; `parseSubmission` parses the raw text, which the payload hash covers. */
const submissionSchema = z.object({
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

const acceptedSchema = z.object({
  isValid: z.literal(true),
  added: z.boolean(),
  alreadyKnown: z.literal(true).optional(),
  transactionId: text,
  registerId: text,
  addedAt: text,
});

/** `POST /api/v1/transactions/validate`: the generic submission of the specification. */
export function mountAdmission(app: App, deps: SubmissionDeps): void {
  app.post(
    '/api/v1/transactions/validate',
    {
      config: { policy: 'RequireAuthenticated', rateLimit: 'Api', rawBody: 'only' },
      validatorCompiler: () => (data) => ({ value: data }),
      schema: {
        operationId: 'submitSignedTransaction',
        summary: 'Submit a signed transaction',
        tags: ['Transactions'],
        body: submissionSchema,
        response: {
          200: acceptedSchema,
          400: problemSchema,
          403: problemSchema,
          409: problemSchema,
          413: problemSchema,
          422: problemSchema,
          429: problemSchema,
          503: problemSchema,
        },
      },
    },
    async (request, reply) => {
      const answer = await answerSubmission(deps, request.rawBody ?? '', originOf(callerOf(request)));
      reply.type(answer.status === 200 ? 'application/json' : 'application/problem+json');
      reply.headers(answerHeaders(answer));
      if (answer.status === 200) return reply.send(JSON.stringify(answer.body));
      const path = request.url.split('?', 1)[0] ?? '/';
      const problem = { ...answer.body, instance: path, path, traceId: request.traceId };
      return reply
        .code(answer.status as 400)
        .type('application/problem+json')
        .send(JSON.stringify(problem));
    },
  );
}
