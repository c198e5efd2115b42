import { type App, addRoute, answer, json, jsonText, problemAnswer } from '#kit/http/http.ts';
import { ofSubmissions } from '../../errors.ts';
import { answerHeaders } from '../../intake/admission/answer.ts';
import { answerSubmission, originOf, type SubmissionDeps } from './answer-submission.ts';
import { acceptedSchema, submissionExample, submissionSchema } from './schemas.ts';

/** `POST /api/v1/transactions/validate`: the generic submission of the specification. */
export function mountAdmission(app: App, deps: SubmissionDeps): void {
  addRoute(app, {
    method: 'POST',
    path: '/api/v1/transactions/validate',
    operationId: 'submitSignedTransaction',
    tag: 'Transactions',
    summary: 'Submit a signed transaction',
    policy: 'RequireAuthenticated',
    rateLimit: 'Api',
    // `parseSubmission` parses the exact text, which the payload hash covers.
    rawBody: 'only',
    body: { schema: submissionSchema, example: submissionExample },
    answers: { 200: json('The transaction is verified and on disk.', acceptedSchema) },
    refusals: ofSubmissions,
    handle: async ({ caller, request }) => {
      const submitted = await answerSubmission(deps, request.rawBody ?? '', originOf(caller));
      const { status, body } = submitted;
      const headers = answerHeaders(submitted);
      if (status === 200) return answer(200, jsonText(JSON.stringify(body)), headers);
      const path = request.url.split('?', 1)[0] ?? '/';
      const problem = { ...body, instance: path, path, traceId: request.traceId };
      return problemAnswer(status, problem, headers);
    },
  });
}
