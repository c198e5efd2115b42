import type { RegisterSpec } from '../../api/register.ts';
import { isRecord } from '../../kube/resource.ts';
import type { Json } from './facts.ts';

type DesiredPolicy = NonNullable<RegisterSpec['policy']>;

/** One setting of a policy that differs from the spec. */
interface PolicyDifference {
  /** `consensus.docketBuildIntervalMs`. */
  readonly field: string;
  readonly desired: unknown;
  readonly found: unknown;
}

/** Enum values are in PascalCase here and hyphenated in the ledger. */
function normalised(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase().replaceAll(/[-_]/g, '') : value;
}

/** Settings of a resource that differ from the ledger; absent settings keep the ledger's values. */
export function policyDifferences(
  desired: DesiredPolicy | undefined,
  found: Json,
): readonly PolicyDifference[] {
  return Object.entries(desired ?? {}).flatMap(([part, settings]) => {
    const current = isRecord(found[part]) ? found[part] : {};
    return Object.entries(settings ?? {}).flatMap(([name, value]) => {
      if (value === undefined || normalised(value) === normalised(current[name])) return [];
      return [{ field: `${part}.${name}`, desired: value, found: current[name] }];
    });
  });
}

/** The minimal patch that removes the differences. */
export function policyPatch(differences: readonly PolicyDifference[]): Json {
  const patch = new Map<string, Record<string, unknown>>();
  for (const { field, desired } of differences) {
    const [part = '', name = ''] = field.split('.');
    patch.set(part, { ...patch.get(part), [name]: desired });
  }
  return Object.fromEntries(patch);
}

/** Whether the change ends public registration, for which the ledger requires a transition mode. */
export function needsTransition(differences: readonly PolicyDifference[]): boolean {
  return differences.some(
    ({ field, desired, found }) =>
      field === 'validators.registrationMode' &&
      normalised(desired) === 'consent' &&
      normalised(found) === 'public',
  );
}

/** A number of a policy in the ledger's notation; the fallback when it is absent. */
export function policyNumber(policy: Json, field: string, fallback: number): number {
  const [part = '', name = ''] = field.split('.');
  const settings = policy[part];
  const value = isRecord(settings) ? settings[name] : undefined;
  return typeof value === 'number' ? value : fallback;
}

/** `consensus.docketBuildIntervalMs 1000 -> 500`, for people. */
export function describeDifferences(differences: readonly PolicyDifference[]): string {
  return differences
    .map(
      ({ field, desired, found }) =>
        `${field} ${found === undefined ? '(unset)' : String(found)} -> ${String(desired)}`,
    )
    .join(', ');
}
