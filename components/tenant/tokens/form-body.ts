import type { App } from '#kit/http/http.ts';
import type { Parameters } from './parameters.ts';
import { parametersOfJson, parseForm } from './parameters.ts';

/** A form as it came; a route turns it into parameters, so that a repeated one is the route's own error. */
class FormText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Lets the routes of this scope take `application/x-www-form-urlencoded` beside JSON. */
export function acceptForms(app: App): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    (_request, body, done) => {
      done(null, new FormText(String(body)));
    },
  );
}

/** Parameters of a form or of a JSON object. Throws OAuthError invalid_request. */
export function parametersOf(body: unknown): Parameters {
  return body instanceof FormText ? parseForm(body.text) : parametersOfJson(body);
}
