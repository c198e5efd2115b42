import { isUtf8 } from 'node:buffer';
import type { z } from 'zod';
import { scanJson } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import type { App } from './app.ts';
import { inputError, malformed } from './problem.ts';

/** Parses JSON bodies strictly, validates input by the zod schemas of a route, and writes answers as JSON. */
export function addBodies(app: App): void {
  const parseJson = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, done) => {
    if (!isUtf8(body)) {
      done(malformed('The body is not valid UTF-8.'));
      return;
    }
    const text = body.toString('utf8');
    const { rawBody } = request.routeOptions.config;
    if (rawBody !== undefined && rawBody !== false) {
      request.rawBody = text;
    }
    if (rawBody === 'only' || text === '') {
      done(null, undefined);
      return;
    }
    try {
      // JSON.parse accepts duplicate members, deep nesting and lone surrogates; the scanner refuses them.
      scanJson(text);
    } catch (error) {
      done(malformed(isAppError(error) ? error.message : 'The body is not valid JSON.'));
      return;
    }
    void parseJson(request, text, (error, value) =>
      error === null ? done(null, value) : done(malformed('The body is not valid JSON.')),
    );
  });
  app.setValidatorCompiler<z.ZodType>(({ schema, httpPart }) => (data) => {
    const result = schema.safeParse(data);
    return result.success ? { value: result.data } : { error: inputError(result.error, httpPart) };
  });
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
}
