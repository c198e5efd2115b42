import { z } from 'zod';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { App } from '#kit/http/http.ts';

/** Members that have another name besides, because documents use both. */
const otherNames: Readonly<Record<string, string>> = { returnUrl: 'returnTo', return_url: 'returnTo' };

/**
 * Lets every route take snake_case and camelCase members, and members of a list of values in any case, whichever its
 * schema spells: clients of both kinds exist. Free-form objects stay as they are. Must be called before routes are added.
 */
export function acceptSpellings(app: App): void {
  app.addHook('preValidation', (request, _reply, done) => {
    const { schema } = request.routeOptions;
    // Forms have the spelling of OAuth, and judge repeated parameters themselves.
    const isForm = request.headers['content-type']?.includes('form-urlencoded') === true;
    try {
      if (!isForm && schema?.body instanceof z.ZodType) request.body = respell(schema.body, request.body);
      if (schema?.querystring instanceof z.ZodType)
        request.query = respell(schema.querystring, request.query);
      done();
    } catch (error) {
      done(error as Error);
    }
  });
}

/**
 * The value with the member names and values that its schema spells, at any depth.
 * @throws AppError invalid INVALID_REQUEST when a member is given in both spellings, with different values
 */
export function respell(schema: z.ZodType, value: unknown): unknown {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodEnum) return respellValue(inner, value);
  if (inner instanceof z.ZodArray && Array.isArray(value)) {
    return value.map((item) => respell(inner.element as z.ZodType, item));
  }
  if (inner instanceof z.ZodObject && isPlain(value)) return respellObject(inner, value);
  return value;
}

function unwrap(schema: z.ZodType): z.ZodType {
  if (schema instanceof z.ZodPipe) {
    // A transformation of what was read stands in front of the schema that it is for.
    const { in: first, out } = schema.def;
    return unwrap((first instanceof z.ZodTransform ? out : first) as z.ZodType);
  }
  const isWrapper =
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodReadonly;
  return isWrapper ? unwrap(schema.unwrap() as z.ZodType) : schema;
}

function respellValue(schema: z.ZodEnum, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  const wanted = value.trim().toLowerCase();
  return schema.options.find((option) => String(option).toLowerCase() === wanted) ?? value;
}

function respellObject(
  schema: z.ZodObject,
  value: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const { shape } = schema;
  const isOwn = (name: string) => Object.hasOwn(shape, name);
  const result: Record<string, unknown> = {};
  for (const [given, member] of Object.entries(value)) {
    const name = isOwn(given)
      ? given
      : ([otherNames[given], snake(given), camel(given)].find((one) => one !== undefined && isOwn(one)) ??
        given);
    const respelled = isOwn(name) ? respell(shape[name] as z.ZodType, member) : member;
    if (Object.hasOwn(result, name) && JSON.stringify(result[name]) !== JSON.stringify(respelled)) {
      const message = `${name} is given in two spellings, with different values.`;
      throw new AppError('invalid', genericCode('invalid'), message);
    }
    Object.defineProperty(result, name, {
      value: respelled,
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return result;
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function camel(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
