import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { compareCodeUnits } from '../../encoding/text.ts';
import type { Route } from '../model/blueprint.ts';
import { findPath, valueAt } from '../pointer.ts';

/** What an output mapping reads: an action's payload and calculations, and the offer that followed it. */
interface MappingSource {
  readonly payload: JsonObject;
  readonly calculations: JsonObject;
  readonly haip?: JsonObject | undefined;
}

/** The document that an output mapping reads when there is no offer. */
type MappingDocument = Readonly<Record<string, JsonObject>>;

/**
 * The data that a route's output mapping writes for the next actions. A source without a value is left out. Targets are
 * written in their order by code units, so that the order of members decides nothing.
 */
export function mapOutputs(
  { outputMapping = {} }: Pick<Route, 'outputMapping'>,
  source: MappingSource,
): JsonObject {
  const document: MappingDocument = {
    payload: source.payload,
    calculations: source.calculations,
    ...(source.haip !== undefined && { haip: source.haip }),
  };
  const pairs = Object.entries(outputMapping).sort(
    ([oneSource, oneTarget], [otherSource, otherTarget]) =>
      compareCodeUnits(oneTarget, otherTarget) || compareCodeUnits(oneSource, otherSource),
  );
  return pairs.reduce<JsonObject>((target, [from, to]) => {
    const [value, path] = [valueAt(document, from), findPath(to)];
    return value === undefined || path === undefined ? target : withValue(target, path, value);
  }, {});
}

/** Whether a mapping reads what only an offer supplies. */
export function readsOffer({ outputMapping = {} }: Pick<Route, 'outputMapping'>): boolean {
  return Object.keys(outputMapping).some((source) => findPath(source)?.[0] === 'haip');
}

function withValue(target: JsonObject, [name, ...rest]: readonly string[], value: unknown): JsonObject {
  if (name === undefined) return target;
  const before = Object.hasOwn(target, name) ? target[name] : undefined;
  const member = rest.length === 0 ? value : withValue(isJsonObject(before) ? before : {}, rest, value);
  return { ...target, [name]: member };
}
