import { Ajv2020 } from 'ajv/dist/2020.js';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { innerSchemas } from '../json-schema.ts';
import { jsonPointer } from '../members.ts';
import { errorAt, type Finding } from '../model/finding.ts';
import type { JsonSchema } from '../model/values.ts';
import { findPattern } from './patterns.ts';
import { resolveLocal } from './references.ts';

/** Bounds of the schemas of one action. */
const LIMITS = {
  depth: 32,
  properties: 500,
  /** Schemas that apply to a payload, each reference counted as a copy. */
  applied: 2_000,
  /** The same, inside one another. */
  appliedDepth: 64,
  /** Schemas that are written, applied or not. */
  written: 5_000,
  /** Names on the way from an action through references. */
  path: 150,
  /** Instructions of all patterns together. */
  patterns: 2_000,
  /** Items that uniqueItems compares with each other. */
  uniqueItems: 1_000,
} as const;

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';

/**
 * Keywords that other dialects have, those whose meaning depends on where a schema is used from, and one that the
 * validator judges otherwise than the standard beside `contains` and `anyOf`.
 */
const REFUSED: ReadonlySet<string> = new Set([
  '$async',
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$vocabulary',
  'additionalItems',
  'dependencies',
  'discriminator',
  'id',
  'nullable',
  'unevaluatedItems',
]);

const metaSchema = new Ajv2020({ strict: false, logger: false, validateFormats: false });

type Path = readonly (string | number)[];

/** Schemas that apply when one does: their number, and the most inside one another. */
interface Applied {
  readonly count: number;
  readonly depth: number;
}

const NONE: Applied = { count: 0, depth: 0 };
const ONE: Applied = { count: 1, depth: 1 };

interface Judgement {
  readonly findings: Finding[];
  readonly root: JsonSchema;
  /** Schemas that apply when one applies; undefined while it is being counted. */
  readonly applied: Map<unknown, Applied | undefined>;
  written: number;
  properties: number;
  patterns: number;
}

function refuse(judgement: Judgement, path: Path, code: string, message: string): void {
  judgement.findings.push(errorAt(jsonPointer(path), code, message));
}

function judgePattern(judgement: Judgement, source: unknown, path: Path): void {
  if (typeof source !== 'string') return;
  const pattern = findPattern(source);
  judgement.patterns += pattern?.size ?? 0;
  if (pattern === undefined) {
    const message =
      'The pattern cannot be matched in linear time; use no look-around and no references to groups';
    refuse(judgement, path, 'VAL_BP_021', message);
  } else if (judgement.patterns > LIMITS.patterns) {
    refuse(judgement, path, 'VAL_BP_021', 'The patterns of the action are too large; use smaller counts');
  }
}

function judgeKeywords(judgement: Judgement, schema: JsonObject, path: Path): void {
  for (const keyword of Object.keys(schema)) {
    const isInnerId = keyword === '$id' && schema !== judgement.root;
    if (REFUSED.has(keyword) || isInnerId) {
      refuse(
        judgement,
        [...path, keyword],
        'VAL_BP_SCHEMA_KEYWORD',
        `Keyword ${keyword} is not allowed here`,
      );
    }
  }
  const dialect = schema['$schema'];
  if (dialect !== undefined && dialect !== DIALECT) {
    refuse(judgement, [...path, '$schema'], 'VAL_BP_SCHEMA_KEYWORD', `The dialect is ${DIALECT}`);
  }
}

function judgeBounds(judgement: Judgement, schema: JsonObject, path: Path): void {
  judgePattern(judgement, schema['pattern'], [...path, 'pattern']);
  const { patternProperties, properties, uniqueItems, maxItems } = schema;
  for (const source of Object.keys(isJsonObject(patternProperties) ? patternProperties : {})) {
    judgePattern(judgement, source, [...path, 'patternProperties', source]);
  }
  const before = judgement.properties;
  judgement.properties += Object.keys(isJsonObject(properties) ? properties : {}).length;
  if (before <= LIMITS.properties && judgement.properties > LIMITS.properties) {
    const message = `The schemas of the action have more than ${LIMITS.properties} properties`;
    refuse(judgement, [...path, 'properties'], 'VAL_BP_SCHEMA_LIMIT', message);
  }
  const isBounded = typeof maxItems === 'number' && maxItems <= LIMITS.uniqueItems;
  if (uniqueItems === true && !isBounded) {
    const message = `uniqueItems needs maxItems of at most ${LIMITS.uniqueItems} beside it`;
    refuse(judgement, [...path, 'uniqueItems'], 'VAL_BP_SCHEMA_LIMIT', message);
  }
}

function judgeEach(judgement: Judgement, schema: unknown, path: Path, depth: number): void {
  if (!isJsonObject(schema)) return;
  if (depth > LIMITS.depth) {
    const message = `The schema is nested deeper than ${LIMITS.depth}`;
    refuse(judgement, path, 'VAL_BP_SCHEMA_LIMIT', message);
    return;
  }
  judgement.written += 1;
  if (judgement.written >= LIMITS.written) {
    const message = `The action has ${LIMITS.written} schemas or more`;
    if (judgement.written === LIMITS.written) refuse(judgement, path, 'VAL_BP_SCHEMA_LIMIT', message);
    return;
  }
  judgeKeywords(judgement, schema, path);
  judgeBounds(judgement, schema, path);
  for (const [step, inner] of innerSchemas(schema))
    judgeEach(judgement, inner, [...path, ...step], depth + 1);
}

/** Schemas that only references apply. */
const APART: ReadonlySet<string> = new Set(['$defs', 'definitions', 'contentSchema']);

/** Counts the schemas that apply when this one does, and judges its reference. */
function countApplied(judgement: Judgement, schema: unknown, path: Path): Applied {
  if (!isJsonObject(schema)) return ONE;
  const known = judgement.applied.get(schema);
  if (known !== undefined) return known;
  if (judgement.applied.has(schema)) {
    const message = 'The schema refers to itself; write out the levels that are needed';
    refuse(judgement, path, 'VAL_BP_SCHEMA_RECURSIVE', message);
    return ONE;
  }
  judgement.applied.set(schema, undefined);
  let { count, depth } = countReferenced(judgement, schema, [...path, '$ref']);
  for (const [step, inner] of innerSchemas(schema)) {
    const below = countApplied(judgement, inner, [...path, ...step]);
    if (APART.has(step[0] ?? '')) continue;
    count += below.count;
    depth = Math.max(depth, below.depth);
  }
  const applied = { count: count + 1, depth: depth + 1 };
  judgement.applied.set(schema, applied);
  return applied;
}

function countReferenced(judgement: Judgement, schema: JsonObject, path: Path): Applied {
  const reference = schema['$ref'];
  if (reference === undefined) return NONE;
  const target = resolveLocal(judgement.root, reference);
  if (target === undefined) {
    refuse(judgement, path, 'VAL_BP_SCHEMA_REF', 'The reference names no schema of the blueprint');
    return NONE;
  }
  if (path.length <= LIMITS.path) return countApplied(judgement, target, path);
  refuse(judgement, path, 'VAL_BP_SCHEMA_LIMIT', 'References lead too far from one schema to the next');
  return NONE;
}

/** Findings about the form of one schema. */
const MAX_FORM_FINDINGS = 10;

function judgeForm(judgement: Judgement, path: Path): void {
  if (metaSchema.validateSchema(judgement.root) === true) return;
  // Where a value may have several forms, there is an error for each of them: the first is enough.
  const places = new Map(
    (metaSchema.errors ?? []).toReversed().map((error) => [error.instancePath, error.message]),
  );
  for (const [place, message] of [...places].slice(-MAX_FORM_FINDINGS)) {
    const text = `This is no JSON Schema: it ${message ?? 'is malformed'}`;
    judgement.findings.push(errorAt(`${jsonPointer(path)}${place}`, 'VAL_BP_SCHEMA', text));
  }
}

/**
 * Judges schemas that apply to one payload, their references to others being flattened. What passes can be compiled,
 * and the cost of judging a payload is bounded.
 * @param path where the schemas are
 */
export function judgeSchemas(schemas: readonly JsonSchema[], path: Path): readonly Finding[] {
  const findings: Finding[] = [];
  let [written, properties, patterns, applied] = [0, 0, 0, 0];
  for (const [index, root] of schemas.entries()) {
    const judgement: Judgement = { findings, root, applied: new Map(), written, properties, patterns };
    const place = [...path, index];
    const before = findings.length;
    judgeEach(judgement, root, place, 1);
    ({ written, properties, patterns } = judgement);
    // What nests too deeply or has foreign keywords is not looked into further.
    if (findings.length > before) continue;
    const { count, depth } = countApplied(judgement, root, place);
    applied += count;
    if (applied > LIMITS.applied || depth > LIMITS.appliedDepth) {
      const message = `More than ${LIMITS.applied} schemas apply to a payload, or more than ${LIMITS.appliedDepth} inside one another`;
      refuse(judgement, place, 'VAL_BP_SCHEMA_LIMIT', message);
    }
    if (findings.length === before) judgeForm(judgement, place);
  }
  return findings;
}
