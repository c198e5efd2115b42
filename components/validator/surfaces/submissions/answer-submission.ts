import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Admission, Origin } from '../../intake/admission/admission.ts';
import { type Answer, admittedAnswer, refusalAnswer } from '../../intake/admission/answer.ts';
import type { Forward } from './forward.ts';

/** Dependencies of answering a submission. */
export interface SubmissionDeps {
  readonly admission: Pick<Admission, 'submit' | 'readSequentially'>;
  /** Absent when there is no validator to forward to. */
  readonly forward?: Forward | undefined;
  /** Called for an internal error, whose text clients do not see. */
  readonly onFault?: ((error: unknown) => void) | undefined;
  nowMs(): number;
}

/** The origin of a submission that arrived over HTTP. */
export function originOf({ kind, organizationId }: Caller): Origin {
  return { isRegisterService: false, ...(kind === 'user' && { person: { organizationId } }) };
}

/** Answers one submission for HTTP and gRPC: with this validator's own answer, or with that of a member it was forwarded to. */
export function answerSubmission(options: SubmissionDeps, text: string, origin: Origin): Promise<Answer> {
  return answerText(options, () => text, origin);
}

/** As answerSubmission, for a text that is not kept in memory; it is decoded again when it is forwarded. */
export function answerText(options: SubmissionDeps, textOf: () => string, origin: Origin): Promise<Answer> {
  return options.admission
    .submit(textOf(), origin)
    .then(admittedAnswer, (refusal: unknown) => answerElsewhere(options, { textOf, origin, refusal }));
}

async function answerElsewhere(
  options: SubmissionDeps,
  refused: { readonly textOf: () => string; readonly origin: Origin; readonly refusal: unknown },
): Promise<Answer> {
  const { textOf, origin, refusal } = refused;
  try {
    const answer = await options.forward?.(textOf(), origin, refusal);
    return answer ?? refuse(options, refusal);
  } catch (error) {
    return refuse(options, error);
  }
}

function refuse({ onFault, nowMs }: SubmissionDeps, error: unknown): Answer {
  if (!isAppError(error) || error.kind === 'internal') onFault?.(error);
  return refusalAnswer(error, nowMs());
}
