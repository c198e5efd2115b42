import { type RawBuilder, sql } from 'kysely';
import type { Comparison } from '../language/syntax.ts';
import type { CallName, Typed, TypedLiteral, ValueType } from '../language/typed.ts';

type Fragment = RawBuilder<unknown>;

const castOf: Readonly<Record<ValueType, string>> = {
  string: 'text',
  number: 'numeric',
  boolean: 'boolean',
  instant: 'timestamptz',
  date: 'date',
};

const operators: Readonly<Record<Comparison, string>> = {
  eq: 'is not distinct from',
  ne: 'is distinct from',
  gt: '>',
  ge: '>=',
  lt: '<',
  le: '<=',
};

/** Text is compared byte by byte, independent of the database's locale. */
function comparable(typed: Typed): Fragment {
  return typed.type === 'string' ? sql`(${translate(typed)}) collate "C"` : sql`(${translate(typed)})`;
}

function bound(literal: TypedLiteral): Fragment {
  return sql`${literal.value}::${sql.raw(castOf[literal.type])}`;
}

type Build = (args: readonly Fragment[]) => Fragment;

const part =
  (field: string): Build =>
  ([of]) =>
    sql`floor(extract(${sql.raw(field)} from (${of}) at time zone 'UTC'))`;

/** No function here has patterns: literals are matched verbatim. */
const calls: Readonly<Record<CallName, Build>> = {
  contains: ([text, part]) => sql`(strpos(${text}, ${part}) > 0)`,
  startswith: ([text, part]) => sql`starts_with(${text}, ${part})`,
  endswith: ([text, part]) => sql`(right(${text}, length(${part})) = ${part})`,
  tolower: ([text]) => sql`lower(${text})`,
  toupper: ([text]) => sql`upper(${text})`,
  trim: ([text]) => sql`btrim(${text})`,
  length: ([text]) => sql`length(${text})`,
  year: part('year'),
  month: part('month'),
  day: part('day'),
  hour: part('hour'),
  minute: part('minute'),
  second: part('second'),
  date: ([of]) => sql`((${of}) at time zone 'UTC')::date`,
};

function membership(item: Typed, values: readonly TypedLiteral[], orNull: boolean): Fragment {
  const array = sql.raw(`${castOf[item.type]}[]`);
  const listed = sql`(${comparable(item)} = any(${values.map(({ value }) => value)}::${array})) is true`;
  return orNull ? sql`(${listed} or (${translate(item)}) is null)` : sql`(${listed})`;
}

/**
 * SQL of an expression over the columns of its entity set, without table names. Literals are bound parameters, column
 * names come from the model, and the rest of the text is constant: client text never becomes SQL. Null follows OData:
 * it equals null only, and no comparison with it holds.
 */
function translate(typed: Typed): Fragment {
  switch (typed.kind) {
    case 'literal':
      return bound(typed);
    case 'property':
      return sql.ref(typed.property.column);
    case 'call':
      return calls[typed.name](typed.args.map(translate));
    case 'compare': {
      const compared = sql`${comparable(typed.left)} ${sql.raw(operators[typed.operator])} ${comparable(typed.right)}`;
      return sql`((${compared}) is true)`;
    }
    case 'isNull':
      return typed.negated
        ? sql`((${translate(typed.of)}) is not null)`
        : sql`((${translate(typed.of)}) is null)`;
    case 'in':
      return membership(typed.item, typed.values, typed.orNull);
    case 'not':
      return sql`(not ${translate(typed.of)})`;
    case 'all':
      return sql`(${sql.join(typed.of.map(translate), sql` and `)})`;
    case 'any':
      return sql`(${sql.join(typed.of.map(translate), sql` or `)})`;
  }
}

/** The conjunction of all terms; true without terms. */
export function translateAll(terms: readonly Typed[]): Fragment {
  return terms.length === 0 ? sql`true` : sql.join(terms.map(translate), sql` and `);
}

export interface TypedOrdering {
  readonly by: Typed;
  readonly direction: 'asc' | 'desc';
}

/** Order-by terms; nulls are lowest, as in OData. */
export function translateOrderings(orderings: readonly TypedOrdering[]): Fragment[] {
  return orderings.map(({ by, direction }) =>
    direction === 'asc' ? sql`${comparable(by)} asc nulls first` : sql`${comparable(by)} desc nulls last`,
  );
}
