import { z } from 'zod';
import { type App, addRoute, json, jsonText } from '#kit/http/http.ts';
import { failure, refusals } from '../../errors.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import { originOf, type SubmissionDeps } from './answer-submission.ts';
import { answerBatch, maxBatchSize, parseBatch } from './batch.ts';
import { batchResultSchema, submissionExample } from './schemas.ts';

const path = '/api/v1/transactions/batch';
const mediaType = 'application/x-ndjson';

/** Of the reference only: the lines are parsed one by one. */
const linesSchema = z
  .string()
  .describe('One submission a line, each as in POST /api/v1/transactions/validate');

/** `POST /api/v1/transactions/batch`: up to 1,000 submissions, one JSON text a line. */
export function mountBatch(app: App, deps: SubmissionDeps): void {
  // an encapsulated scope: the NDJSON parser applies to this route only
  app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser(mediaType, { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    addBatchRoute(scope, deps);
    done();
  });
}

function addBatchRoute(app: App, deps: SubmissionDeps): void {
  addRoute(app, {
    method: 'POST',
    path,
    operationId: 'submitTransactionBatch',
    tag: 'Transactions',
    summary: `Submit up to ${maxBatchSize} signed transactions of one register`,
    policy: 'RequireAuthenticated',
    rateLimit: 'Strict',
    rawBody: 'only',
    consumes: mediaType,
    body: { schema: linesSchema, example: `${JSON.stringify(submissionExample)}\n` },
    answers: { 200: json('The answer to each line.', batchResultSchema) },
    refusals: refusals('BATCH_TOO_LARGE'),
    handle: async ({ caller, request }) => {
      const answers = await answerBatch(deps, parseBatch(bodyOf(request.body)), originOf(caller));
      const results = answers.map(resultOf);
      const accepted = answers.filter(({ status }) => status === 200).length;
      // Another validator may have written some of the results.
      return jsonText(JSON.stringify({ accepted, refused: answers.length - accepted, results }));
    },
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
