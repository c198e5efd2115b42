import { findFormText } from '#kit/http/http.ts';
import { type Parameters, parametersOfJson, parseForm } from './parameters.ts';

/** Parameters of a form or of a JSON object. @throws OAuthError invalid_request */
export function parametersOf(body: unknown): Parameters {
  const text = findFormText(body);
  return text === undefined ? parametersOfJson(body) : parseForm(text);
}
