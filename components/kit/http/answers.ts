import { z } from 'zod';
import { problemSchema } from './problem.ts';

/**
 * Answers by status for `schema.response`. They are documentation: what a handler sends is neither checked nor changed,
 * so the type of what it sends is open.
 */
type Answers = Readonly<Record<number, unknown>>;

/** A JSON answer whose members the API reference does not describe. */
export function jsonAnswer(description: string, status = 200): Answers {
  return mediaAnswer('application/json', z.unknown(), { description, status });
}

/** A text answer of another media type, such as `text/plain`. */
export function textAnswer(mediaType: string, description: string): Answers {
  return mediaAnswer(mediaType, z.string(), { description, status: 200 });
}

/** An answer of one media type. */
export function mediaAnswer(
  mediaType: string,
  schema: z.ZodType,
  answer: { readonly description: string; readonly status: number },
): Answers {
  const { description, status } = answer;
  return { [status]: { description, content: { [mediaType]: { schema } } } };
}

/** An answer without a body. */
export function emptyAnswer(description: string, status = 204): Answers {
  return { [status]: z.undefined().describe(description) };
}

/**
 * Refusals of a route whose protocol has its own error format. A request that is refused before the route handles it is
 * still answered with a problem.
 */
export function errorAnswer(schema: z.ZodType): object {
  const content = { 'application/json': { schema }, 'application/problem+json': { schema: problemSchema } };
  return { description: 'Refusal', content };
}
