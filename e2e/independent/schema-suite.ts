import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { compileSchemas } from '#core/blueprint/schemas/compile.ts';
import { judgeSchemas } from '#core/blueprint/schemas/judge.ts';
import { type Counts, script } from './programs.ts';

const groupSchema = z.object({
  file: z.string(),
  description: z.string(),
  schema: z.custom<boolean | Readonly<Record<string, unknown>>>((value) => value !== null),
  tests: z.array(z.object({ description: z.string(), data: z.unknown(), valid: z.boolean() })),
});

type Group = z.output<typeof groupSchema>;

/** Groups whose schemas are refused at publication: `file code`, and their number. */
const refused: Readonly<Record<string, number>> = {
  // references to anchors, to other documents and to schemas themselves, and ids inside a schema
  'anchor.json VAL_BP_SCHEMA_KEYWORD': 3,
  'anchor.json VAL_BP_SCHEMA_REF': 1,
  'defs.json VAL_BP_SCHEMA_REF': 1,
  'dynamicRef.json VAL_BP_SCHEMA_KEYWORD': 19,
  'dynamicRef.json VAL_BP_SCHEMA_REF': 1,
  'ref.json VAL_BP_SCHEMA_KEYWORD': 11,
  'ref.json VAL_BP_SCHEMA_RECURSIVE': 1,
  'ref.json VAL_BP_SCHEMA_REF': 4,
  'refRemote.json VAL_BP_SCHEMA_KEYWORD': 3,
  'refRemote.json VAL_BP_SCHEMA_REF': 12,
  'unevaluatedProperties.json VAL_BP_SCHEMA_KEYWORD': 1,
  'unevaluatedProperties.json VAL_BP_SCHEMA_RECURSIVE': 1,
  // dialects
  'vocabulary.json VAL_BP_SCHEMA_KEYWORD': 2,
  // the keyword itself
  'unevaluatedItems.json VAL_BP_SCHEMA_KEYWORD': 27,
  // no maxItems
  'uniqueItems.json VAL_BP_SCHEMA_LIMIT': 3,
};

/** Cases that are judged otherwise than the suite says: `file: group`, and their number. */
const differing: Readonly<Record<string, number>> = {
  // formats are asserted
  'format.json: date format': 1,
  'format.json: date-time format': 1,
  'format.json: email format': 1,
  'format.json: json-pointer format': 1,
  'format.json: time format': 1,
  'format.json: uri format': 1,
  'format.json: uuid format': 1,
  // neither quoted local parts nor addresses of hosts
  'optional/format/email.json: validation of e-mail addresses': 5,
  // no member of a definition is named __proto__
  'properties.json: properties whose names are Javascript object property names': 1,
  // an if without then evaluates no properties
  'unevaluatedProperties.json: unevaluatedProperties can see annotations from if without then and else': 1,
  'unevaluatedProperties.json: unevaluatedProperties with if/then/else, then not defined': 1,
};

interface Outcome {
  /** Cases that are judged as the suite says. */
  readonly passed: number;
  /** Group that is refused, or whose cases are judged otherwise. */
  readonly name?: string;
  readonly kind?: 'refused' | 'differing';
  readonly count: number;
}

function judgeGroup({ file, description, schema, tests }: Group): Outcome {
  const [finding] = judgeSchemas([schema], []);
  if (finding !== undefined) return { passed: 0, name: `${file} ${finding.code}`, kind: 'refused', count: 1 };
  const judge = compileSchemas({ dataSchemas: [schema] });
  const wrong = tests.filter(({ data, valid }) => (judge(data).length === 0) !== valid).length;
  const passed = tests.length - wrong;
  if (wrong === 0) return { passed, count: 0 };
  return { passed, name: `${file}: ${description}`, kind: 'differing', count: wrong };
}

function tally(outcomes: readonly Outcome[], kind: Outcome['kind']): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { name, count } of outcomes.filter((each) => each.kind === kind)) {
    if (name !== undefined) counts[name] = (counts[name] ?? 0) + count;
  }
  return counts;
}

/** Prints each name whose number is not the listed one, and counts them. */
function unexpected(
  found: Readonly<Record<string, number>>,
  listed: Readonly<Record<string, number>>,
): number {
  const names = [...new Set([...Object.keys(found), ...Object.keys(listed)])];
  const wrong = names.filter((name) => found[name] !== listed[name]);
  for (const name of wrong) {
    process.stdout.write(`NOT ${name}: ${found[name] ?? 0} instead of ${listed[name] ?? 0}\n`);
  }
  return wrong.length;
}

/** The official cases of JSON Schema, judged by `jsonschema` and by the validator of data schemas. */
export async function schemaSuite(dir: string): Promise<Counts[]> {
  const file = join(dir, 'schema-cases.jsonl');
  const theirs = await script('schema_suite.py', [file]);
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  process.stdout.write('\ndata schemas\n');
  const outcomes = lines.map((line) => judgeGroup(groupSchema.parse(JSON.parse(line))));
  const failed =
    unexpected(tally(outcomes, 'refused'), refused) + unexpected(tally(outcomes, 'differing'), differing);
  const passed = outcomes.reduce((sum, outcome) => sum + outcome.passed, 0);
  process.stdout.write(`${passed} passed, ${failed} failed\n`);
  return [theirs, { passed, failed }];
}
