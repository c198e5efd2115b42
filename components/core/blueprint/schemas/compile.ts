import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import { isJsonObject } from '../../encoding/json.ts';
import { AppError } from '../../errors/errors.ts';
import type { Action } from '../model/blueprint.ts';
import type { JsonSchema } from '../model/values.ts';
import { judgeSchemas } from './judge.ts';
import { findPattern, MAX_MATCHED_LENGTH } from './patterns.ts';

/** Errors of one payload in an answer. */
const MAX_ERRORS = 100;

/** What is wrong with a payload. */
export interface PayloadError {
  /** JSON Pointer into the payload. */
  readonly path: string;
  readonly message: string;
  /** JSON Pointer into the action. */
  readonly schemaLocation: string;
  readonly keyword: string;
}

export type JudgePayload = (payload: unknown) => PayloadError[];

/** ITU-T E.164: a plus sign and up to 15 digits. */
const TELEPHONE = /^\+[1-9][0-9]{1,14}$/;

/** Formats that are asserted; all others are annotations. */
const FORMATS = ['email', 'date', 'date-time', 'time', 'uri', 'uuid', 'json-pointer'] as const;

function checkOf(name: (typeof FORMATS)[number]): (text: string) => boolean {
  const format: unknown = fullFormats[name];
  if (typeof format === 'function') return (text) => Boolean(format(text));
  if (format instanceof RegExp) return (text) => format.test(text);
  const { validate } = format as { readonly validate: RegExp | ((text: string) => boolean) };
  return typeof validate === 'function' ? validate : (text) => validate.test(text);
}

const bounded = (check: (text: string) => boolean) => (text: string) =>
  text.length <= MAX_MATCHED_LENGTH && check(text);

/** Characters times instructions of patterns that one payload may cost: about a second. */
const MATCHING_BUDGET = 10_000_000;

/** Cost of the patterns of one payload. */
interface Meter {
  spent: number;
}

/** The constructor of patterns for schemas that were judged. Matching throws when the payload costs too much. */
function meteredRegExp(meter: Meter) {
  const construct = (source: string) => {
    const pattern = findPattern(source);
    if (pattern === undefined) throw new AppError('internal', 'INTERNAL_ERROR', 'A pattern was not judged');
    const test = (text: string): boolean => {
      meter.spent += text.length * pattern.size;
      if (meter.spent <= MATCHING_BUDGET) return pattern.test(text);
      const message = 'Matching the patterns of the data schemas takes too long; send shorter texts';
      throw new AppError('unprocessable', 'SCHEMA_BUDGET_EXCEEDED', message);
    };
    return { ...pattern, test };
  };
  // The name in generated code that is stored; ours is not.
  return Object.assign(construct, { code: 'meteredRegExp' });
}

function createAjv(meter: Meter): Ajv2020 {
  const ajv = new Ajv2020({
    strict: false,
    logger: false,
    allErrors: true,
    ownProperties: true,
    meta: false,
    validateSchema: false,
    code: { regExp: meteredRegExp(meter) },
  });
  for (const name of FORMATS) ajv.addFormat(name, { type: 'string', validate: bounded(checkOf(name)) });
  ajv.addFormat('tel', { type: 'string', validate: bounded((text) => TELEPHONE.test(text)) });
  return ajv;
}

/** Two schemas of an action may have the same $id, which the validator would take for one. */
function anonymous(schema: JsonSchema): JsonSchema {
  if (!isJsonObject(schema)) return schema;
  const { $id: _, $schema: __, ...rest } = schema;
  return rest;
}

function present(error: ErrorObject, index: number): PayloadError {
  const { instancePath, message = 'is not valid', schemaPath, keyword } = error;
  return {
    path: instancePath,
    message,
    schemaLocation: `/dataSchemas/${index}${schemaPath.replace(/^#/, '')}`,
    keyword,
  };
}

/**
 * Compiles the data schemas of an action; a payload must match all of them. The formats email, date, date-time, time,
 * uri, uuid, tel and json-pointer are asserted. Patterns are matched in linear time; like formats they match no text
 * that is longer than 65,536 characters.
 * @throws AppError unprocessable SCHEMA_REFUSED for schemas that judgeSchemas refuses; what is returned throws
 * SCHEMA_BUDGET_EXCEEDED for a payload whose texts are too long for the patterns
 */
export function compileSchemas({ dataSchemas = [] }: Pick<Action, 'dataSchemas'>): JudgePayload {
  const [finding] = judgeSchemas(dataSchemas, ['dataSchemas']);
  if (finding !== undefined) {
    const message = `The data schema at ${finding.location} cannot be used: ${finding.message}`;
    throw new AppError('unprocessable', 'SCHEMA_REFUSED', message);
  }
  const meter: Meter = { spent: 0 };
  const ajv = createAjv(meter);
  const compiled = dataSchemas.map((schema) => ajv.compile(anonymous(schema)));
  return (payload) => {
    meter.spent = 0;
    return compiled
      .flatMap((validate, index) =>
        validate(payload) ? [] : (validate.errors ?? []).map((error) => present(error, index)),
      )
      .slice(0, MAX_ERRORS);
  };
}
