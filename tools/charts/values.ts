import { z } from 'zod';

interface Property {
  readonly description?: string | undefined;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Property>> | undefined;
}

const property: z.ZodType<Property> = z.lazy(() =>
  z.object({
    description: z.string().optional(),
    default: z.unknown().optional(),
    properties: z.record(z.string(), property).optional(),
  }),
);

/** One value of a chart. */
interface Value {
  /** Path with dots. */
  readonly name: string;
  readonly meaning: string;
  /** Undefined without a default. */
  readonly standard: unknown;
}

const membersOf = (schema: unknown): readonly (readonly [string, Property])[] =>
  Object.entries(property.parse(schema).properties ?? {}).filter(([name]) => name !== 'global');

/** All values of a chart's JSON Schema, in order; an object with properties is replaced by its properties. */
export function listValues(schema: unknown): readonly Value[] {
  return membersOf(schema).flatMap(([name, one]) => valuesOf(name, one));
}

function valuesOf(name: string, one: Property): readonly Value[] {
  const inner = Object.entries(one.properties ?? {});
  if (inner.length === 0) return [{ name, meaning: one.description ?? '', standard: one.default }];
  return inner.flatMap(([member, of]) => valuesOf(`${name}.${member}`, of));
}

/** `values.yaml`: each value with its description and default. */
export function renderValues(schema: unknown): string {
  const head = '# Made by "npm run gen" from values.schema.json; edit there.';
  return `${[head, ...membersOf(schema).flatMap(([name, one]) => ['', ...yamlOf(name, one, 0)])].join('\n')}\n`;
}

function yamlOf(name: string, one: Property, depth: number): readonly string[] {
  const indent = '  '.repeat(depth);
  const inner = Object.entries(one.properties ?? {});
  const comment = `${indent}# ${one.description ?? ''}`;
  if (inner.length === 0) return [comment, `${indent}${name}: ${JSON.stringify(one.default)}`];
  return [comment, `${indent}${name}:`, ...inner.flatMap(([member, of]) => yamlOf(member, of, depth + 1))];
}

const markers = { begin: '<!-- values: npm run gen -->', end: '<!-- /values -->' } as const;

/**
 * A README with a regenerated table of values (name, default, meaning).
 * @throws Error when a marker is missing
 */
export function withTable(readme: string, schema: unknown): string {
  const [from, to] = [readme.indexOf(markers.begin), readme.indexOf(markers.end)];
  if (from < 0 || to < from) throw new Error('the README has no place for the table of values');
  return `${readme.slice(0, from + markers.begin.length)}\n\n${renderTable(schema)}\n\n${readme.slice(to)}`;
}

function renderTable(schema: unknown): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|');
  const lines = listValues(schema).map(
    ({ name, meaning, standard }) =>
      `| ${name} | ${cell(`\`${JSON.stringify(standard)}\``)} | ${cell(meaning)} |`,
  );
  return ['| Value | Default | Meaning |', '| --- | --- | --- |', ...lines].join('\n');
}
