import { z } from 'zod';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import { type Connections, malformedAnswer } from '../../network/peers/connections.ts';

/** Forwards submissions to other validators. */
export interface SubmissionClient {
  /** Forwards a submission; the receiver does not forward it again. */
  submit(validatorId: string, submission: Uint8Array): Promise<Answer>;
}

const submitTimeoutMs = 5_000;

export function createSubmissionClient(connections: Pick<Connections, 'call'>): SubmissionClient {
  return {
    submit: (validatorId, submissionJson) =>
      connections.call(validatorId, async ({ submissions }) => {
        const request = { submissionJson, forwarded: true };
        return answerOf(await submissions.submit(request, { timeoutMs: submitTimeoutMs }));
      }),
  };
}

const answerSchema = z.object({
  status: z.int().min(200).max(599),
  body: z.record(z.string(), z.unknown()),
  retryAfterSeconds: z.int().min(0).max(86_400),
});
/** Fits a refusal with all of its violations. */
const maxAnswerBytes = 256 * 1024;

/** Parses another validator's answer, which is passed on to the client. */
export function answerOf(wire: {
  readonly status: number;
  readonly bodyJson: Uint8Array;
  readonly retryAfterSeconds: number;
}): Answer {
  const { status, bodyJson, retryAfterSeconds } = wire;
  if (bodyJson.length > maxAnswerBytes) throw malformedAnswer(undefined);
  const parsed = answerSchema.safeParse({ status, body: bodyOf(bodyJson), retryAfterSeconds });
  if (parsed.success) return parsed.data;
  throw malformedAnswer(parsed.error);
}

/** Undefined for malformed JSON. */
function bodyOf(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}
