import { AppError } from '#core/errors/errors.ts';
import type { App } from './app.ts';

/** Parameters of a form, one value each; a parameter without a value counts as omitted (RFC 6749, section 3.2). */
export type FormParameters = ReadonlyMap<string, string>;

const maxParameters = 32;

/** An unparsed form; the route parses it, so that a repeated parameter is an error of the route. */
class FormText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Lets the routes of this scope accept `application/x-www-form-urlencoded` in addition to JSON. */
export function acceptForms(app: App): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => {
      done(null, new FormText(String(body)));
    },
  );
}

/** The text of a body that is a form; undefined for every other body. */
export function findFormText(body: unknown): string | undefined {
  return body instanceof FormText ? body.text : undefined;
}

/**
 * Parses a form. NUL is refused, because it is not allowed in names, secrets or tokens (RFC 6749, appendix A).
 * @throws AppError invalid INVALID_REQUEST for a repeated parameter, more than 32 of them, or NUL
 */
export function parseForm(text: string): FormParameters {
  const parameters = new Map<string, string>();
  const seen = new Set<string>();
  for (const [name, value] of new URLSearchParams(text)) {
    if (seen.has(name)) throw malformed(`parameter ${JSON.stringify(name.slice(0, 64))} is repeated`);
    seen.add(name);
    if (seen.size > maxParameters) throw malformed('too many parameters');
    if (value.includes('\0')) throw malformed('a parameter contains a character that is not allowed');
    if (value !== '') parameters.set(name, value);
  }
  return parameters;
}

function malformed(message: string): AppError {
  return new AppError('invalid', 'INVALID_REQUEST', message);
}
