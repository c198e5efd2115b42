import { z } from 'zod';
import { operatorError } from '../errors.ts';

/**
 * One rule of one node of a schema, in two languages. The API server evaluates `cel`; the parser evaluates `holds`.
 * A rule over `oldSelf` has no `holds`, because a parser sees one object only.
 */
interface Rule<T> {
  readonly cel: string;
  /** Names the field and the remedy. */
  readonly message: string;
  readonly holds?: (value: T) => boolean;
  /** Member that the violation is about, relative to this node. */
  readonly path?: string;
}

interface CelRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

const VALIDATIONS = 'x-kubernetes-validations';

function celRules(schema: z.ZodType): readonly CelRule[] {
  const found = schema.meta()?.[VALIDATIONS];
  return Array.isArray(found) ? found : [];
}

/** Adds rules to a schema. Call `.describe()` afterwards. */
export function withRules<S extends z.ZodType>(schema: S, ...rules: readonly Rule<z.output<S>>[]): S {
  let ruled = schema;
  for (const { message, holds, path } of rules) {
    if (holds === undefined) continue;
    ruled = ruled.refine((value) => holds(value), {
      message,
      // rules run only on values that are otherwise well formed
      when: ({ issues }) => issues.length === 0,
      ...(path === undefined ? {} : { path: [path] }),
    });
  }
  const cel = rules.map(({ cel: rule, message, path }) => ({
    rule,
    message,
    ...(path === undefined ? {} : { fieldPath: `.${path}` }),
  }));
  return ruled.meta({ [VALIDATIONS]: [...celRules(schema), ...cel] });
}

/** A value that cannot change. An optional one also needs keepsPresence on its parent. */
export function immutable<S extends z.ZodType>(schema: S, message: string): S {
  return withRules(schema, { cel: 'self == oldSelf', message });
}

/** Rule of a parent: its optional member cannot be added or removed. */
export function keepsPresence<T>(member: string, message: string): Rule<T> {
  return { cel: `has(self.${member}) == has(oldSelf.${member})`, message, path: member };
}

interface TextOptions {
  readonly min?: number;
  readonly max: number;
  /** Valid in JavaScript and RE2: anchored, without look-around. */
  readonly pattern?: RegExp;
  /** The remedy: what to write instead. */
  readonly message?: string;
}

/** A pattern as a raw CEL literal, so that backslashes need no escapes. */
function celPattern(pattern: RegExp): string {
  if (pattern.source.includes("'")) {
    throw operatorError('SCHEMA_NOT_STRUCTURAL', `${pattern.source} holds a quotation mark`);
  }
  return `r'${pattern.source.replaceAll('\\/', '/')}'`;
}

/**
 * Text with bounds in code points, as the API server counts them. A pattern becomes a CEL rule, because the API
 * server's own message for `pattern` names no remedy.
 */
export function text({ min = 0, max, pattern, message = `write ${min} to ${max} characters` }: TextOptions) {
  const sized = z
    .string()
    .refine((value) => value.isWellFormed() && [...value].length >= min && [...value].length <= max, {
      message: `write ${min} to ${max} characters`,
    })
    .meta({ ...(min > 0 ? { minLength: min } : {}), maxLength: max });
  if (pattern === undefined) return sized;
  const rule = { cel: `self.matches(${celPattern(pattern)})`, message };
  return withRules(sized, { ...rule, holds: (value) => pattern.test(value) });
}

/** A whole number with both bounds. */
export function integer(min: number, max: number) {
  return z.int().min(min).max(max);
}

const quantityPattern = /^[0-9]{1,15}([.][0-9]{1,9})?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/;

/**
 * A Kubernetes quantity as YAML writes it: number or text. Exponents, signs and the units n and u are not supported.
 */
export function quantityInput() {
  const union = z.union([z.string().max(32), z.int().min(0).max(Number.MAX_SAFE_INTEGER)]);
  return withRules(union.meta({ 'x-kubernetes-int-or-string': true, maxLength: 32 }), {
    cel: `string(self).matches(${celPattern(quantityPattern)})`,
    message: 'write a quantity such as 500m, 2, 64Mi or 1.5Gi',
    holds: (value) => quantityPattern.test(String(value)),
  });
}

/** A quantity; its parsed form is always text. */
export function quantity() {
  return quantityInput().transform(String);
}

interface MapOptions {
  readonly entries: number;
  readonly keyMax: number;
  readonly keyPattern?: RegExp;
  readonly message: string;
}

/** A map with bounded keys; `value` is the schema of the values. */
export function mapOf<V extends z.ZodType>(value: V, { entries, keyMax, keyPattern, message }: MapOptions) {
  const map = z.record(z.string(), value).meta({ maxProperties: entries });
  const pattern = keyPattern === undefined ? '' : ` && k.matches(${celPattern(keyPattern)})`;
  const isKey = (key: string): boolean =>
    key.length > 0 && [...key].length <= keyMax && (keyPattern?.test(key) ?? true);
  return withRules(
    map.refine((found) => Object.keys(found).length <= entries, `write at most ${entries} entries`),
    {
      cel: `self.all(k, size(k) > 0 && size(k) <= ${keyMax}${pattern})`,
      message,
      holds: (found) => Object.keys(found).every(isKey),
    },
  );
}

/** A list of at most `max` elements. */
export function listOf<E extends z.ZodType>(element: E, max: number) {
  return z.array(element).max(max);
}

/** Name of an object that is also used as the value of a label. */
export const labelName = {
  max: 63,
  min: 1,
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  message:
    'write a name of lower-case letters, digits and hyphens that begins and ends with a letter or digit',
} as const;

/** A reference to an object of the same namespace. */
export function nameRef(of: string) {
  return z.strictObject({ name: text(labelName).describe(`Name of the ${of}, in the same namespace.`) });
}
