import { z } from 'zod';
import { type App, callerOf, problemSchema } from '#kit/http/http.ts';
import { failure } from '../../errors.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import { originOf, type SubmissionDeps } from './answer-submission.ts';
import { answerBatch, maxBatchSize, parseBatch } from './batch.ts';

const path = '/api/v1/transactions/batch';
const mediaType = 'application/x-ndjson';

const judgedSchema = z.object({
  accepted: z.int().describe('How many are verified and on disk'),
  refused: z.int(),
  results: z
    .array(z.looseObject({ status: z.int() }))
    .describe('In the order of the lines: status and body as POST /api/v1/transactions/validate gives them'),
});

/** `POST /api/v1/transactions/batch`: up to 1,000 submissions, one JSON text a line. */
export function mountBatch(app: App, deps: SubmissionDeps): void {
  // an encapsulated scope: the NDJSON parser applies to this route only
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(mediaType, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.post(
      path,
      {
        config: { policy: 'RequireAuthenticated', rateLimit: 'Strict' },
        validatorCompiler: () => (data) => ({ value: data }),
        schema: {
          operationId: 'submitTransactionBatch',
          summary: `Submit up to ${maxBatchSize} signed transactions of one register`,
          tags: ['Transactions'],
          consumes: [mediaType],
          body: z.string().describe('One submission a line, each as in POST /api/v1/transactions/validate'),
          response: { 200: judgedSchema, 400: problemSchema, 413: problemSchema, 415: problemSchema },
        },
      },
      async (request, reply) => {
        const origin = originOf(callerOf(request));
        const answers = await answerBatch(deps, parseBatch(bodyOf(request.body)), origin);
        const results = answers.map(resultOf);
        const accepted = answers.filter(({ status }) => status === 200).length;
        return reply.send({ accepted, refused: answers.length - accepted, results });
      },
    );
    done();
  });
}

/** A request without a body has no content type that a parser could refuse. */
function bodyOf(body: unknown): Buffer {
  if (Buffer.isBuffer(body)) return body;
  throw failure('INVALID_REQUEST', { message: 'The batch is empty.' });
}

function resultOf({ status, body, retryAfterSeconds }: Answer): { status: number } {
  // a refusal names the route that was called
  const origin = status === 200 ? {} : { instance: path, path };
  return { ...body, ...origin, status, ...(retryAfterSeconds > 0 && { retryAfterSeconds }) };
}
