import { AppError } from '#core/errors/errors.ts';

/** What `query` of a pg client takes. With a `name` each connection parses the text once. */
export interface BoundStatement {
  readonly text: string;
  readonly values: unknown[];
  readonly name?: string;
}

/** Binds values to the parameters of a statement, by name. */
type Statement<Values extends object> = (values: Values) => BoundStatement;

/** Quoted literals and names, casts, and parameters, of which only the last has a group. */
const lexemes = /'(?:[^']|'')*'|"(?:[^"]|"")*"|::|:([A-Za-z]\w*)/g;

/**
 * Compiles SQL with named parameters to the numbered ones of PostgreSQL, once; binding only orders the values. A
 * parameter is `:name`, as often as needed; `::type` is a cast, and text in quotes is left alone. Bounds of an array
 * slice are to be set apart by blanks (`a[1 : n]`), and comments and dollar quoting are not understood.
 *
 * @param name of the prepared statement; unnamed when absent
 * @returns a function that throws AppError internal STATEMENT_INCOMPLETE for a parameter without a value
 */
export function statement<Values extends object>(sql: string, name?: string): Statement<Values> {
  const numbers = new Map<string, number>();
  const text = sql.replaceAll(lexemes, (lexeme: string, parameter: string | undefined) => {
    if (parameter === undefined) return lexeme;
    const number = numbers.get(parameter) ?? numbers.size + 1;
    numbers.set(parameter, number);
    return `$${number}`;
  });
  const parameters = [...numbers.keys()];
  return (given) => {
    const byName = new Map<string, unknown>(Object.entries(given));
    const values = parameters.map((parameter) => parameterOf(byName, parameter));
    return { text, values, ...(name !== undefined && { name }) };
  };
}

/** pg would send null for undefined, and hide that a value was forgotten. */
function parameterOf(byName: ReadonlyMap<string, unknown>, parameter: string): unknown {
  const value = byName.get(parameter);
  if (value !== undefined) return value;
  throw new AppError('internal', 'STATEMENT_INCOMPLETE', `The parameter :${parameter} has no value`);
}
