import { isAppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Admission, Origin } from './admission.ts';
import { type Answer, admittedAnswer, refusalAnswer } from './answer.ts';
import type { Forward } from './forward.ts';

/** What answering a submission needs. */
export interface Answering {
  readonly admission: Pick<Admission, 'submit' | 'readInTurn'>;
  /** Absent: nobody to hand anything on to. */
  readonly forward?: Forward | undefined;
  /** A fault of ours: its text stays inside, so it must be told here. */
  readonly onFault?: ((error: unknown) => void) | undefined;
  nowMs(): number;
}

/** Where a submission that came over HTTP comes from. */
export function originOf({ kind, organizationId }: Caller): Origin {
  return { isRegisterService: false, ...(kind === 'user' && { person: { organizationId } }) };
}

/** Judges one submission into the answer that both surfaces give: our own, or that of a member of its register. */
export function answerSubmission(options: Answering, text: string, origin: Origin): Promise<Answer> {
  return answerText(options, () => text, origin);
}

/** As answerSubmission, of a text that is not kept: it is read once more where it is handed on. */
export function answerText(options: Answering, textOf: () => string, origin: Origin): Promise<Answer> {
  return options.admission
    .submit(textOf(), origin)
    .then(admittedAnswer, (refusal: unknown) => answerElsewhere(options, { textOf, origin, refusal }));
}

async function answerElsewhere(
  options: Answering,
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

function refuse({ onFault, nowMs }: Answering, error: unknown): Answer {
  if (!isAppError(error) || error.kind === 'internal') onFault?.(error);
  return refusalAnswer(error, nowMs());
}
