import type { EntitySet, Property } from '../language/model.ts';
import type { Row } from '../language/row.ts';
import { instantText } from '../language/tokens.ts';

function jsonValue(property: Property, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return instantText(BigInt(value.getTime()) * 1_000n);
  return property.type === 'Edm.Int64' ? Number(value) : value;
}

/** A row as a JSON entity: the selected properties, or all of the set. */
export function presentEntity(set: EntitySet, row: Row, select: readonly Property[] | undefined) {
  const shown = select ?? set.properties;
  const values = shown.map((property) => [property.name, present(set, property, row)]);
  return Object.fromEntries(values) as Readonly<Record<string, unknown>>;
}

/** Timestamps of the ledger are shown to the microsecond, because filters compare the shown value. */
function present(set: EntitySet, property: Property, row: Row): unknown {
  const exact = set.name !== 'Registers' && property.type === 'Edm.DateTimeOffset';
  return exact ? instantText(BigInt(row.created_micros)) : jsonValue(property, row[property.column]);
}

/** The context URL of an answer: set, selected properties, and whether it is one entity. */
export function contextUrl(
  base: string,
  set: EntitySet,
  select: readonly Property[] | undefined,
  one = false,
): string {
  const names = select === undefined ? '' : `(${select.map(({ name }) => name).join(',')})`;
  return `${base}$metadata#${set.name}${names}${one ? '/$entity' : ''}`;
}
