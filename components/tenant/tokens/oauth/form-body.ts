import type { App } from '#kit/http/http.ts';
import type { Parameters } from './parameters.ts';
import { parametersOfJson, parseForm } from './parameters.ts';

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

/** Parameters of a form or of a JSON object. @throws OAuthError invalid_request */
export function parametersOf(body: unknown): Parameters {
  return body instanceof FormText ? parseForm(body.text) : parametersOfJson(body);
}
