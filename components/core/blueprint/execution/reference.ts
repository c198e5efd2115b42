import type { JsonObject } from '../../encoding/json.ts';
import type { InstanceReference } from '../model/blueprint.ts';
import { valueAt } from '../pointer.ts';

const DEFAULT_SEPARATOR = '-';
const maxPartLength = 64;

/**
 * A label of an instance for people: prefix, values of the first action's payload, and the last digits of the instance
 * id in upper case, as `TSP-AB-1234-9F3C`. Undefined when nothing is left of it.
 */
export function instanceReference(
  { prefix, fields = [], separator = DEFAULT_SEPARATOR, suffixLength = 0 }: InstanceReference,
  payload: JsonObject,
  instanceId: string,
): string | undefined {
  const digits = instanceId.replaceAll('-', '').toUpperCase();
  const suffix = suffixLength === 0 ? '' : digits.slice(-suffixLength);
  const parts = [prefix ?? '', ...fields.map((pointer) => partOf(valueAt(payload, pointer))), suffix];
  const filled = parts.filter((part) => part !== '');
  return filled.length === 0 ? undefined : filled.join(separator);
}

/** Text, numbers and booleans; control characters would break the label's line. */
function partOf(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') return '';
  return [...String(value).replaceAll(/\p{C}/gu, '')].slice(0, maxPartLength).join('');
}
