import { AppError, type Violation, violation } from '#core/errors/errors.ts';
import { defaultPolicy } from '#core/ledger/policy.ts';

/** The settings that may be changed at runtime, by name; null where nothing is set. */
export interface RuntimeSettings {
  readonly 'build.intervalMs': number | null;
  readonly 'build.maxTransactions': number | null;
  readonly 'mempool.maxSize': number;
  readonly 'mempool.maxBytes': number;
  readonly 'validation.concurrency': number;
  readonly 'rateLimit.perMinute': number | null;
  readonly logLevel: string;
}

type SettingName = keyof RuntimeSettings;
type SettingValue = number | string | null;
export type SettingChanges = ReadonlyMap<SettingName, SettingValue>;

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const;

/** A whole number within inclusive bounds; an empty range means that this validator cannot change the setting. */
interface Range {
  readonly min: number;
  readonly max: number;
}

/** The bounds of the numbers at one validator. */
export type Ranges = Readonly<Record<Exclude<SettingName, 'logLevel'>, Range>>;

/** Settings that are fixed at start, by the name they would have here. */
const fixed: Readonly<Record<string, string>> = {
  'mempool.maxControlTransactions': 'CHANCERY_POOL_MAX_CONTROL_TRANSACTIONS',
  'mempool.maxBytesTotal': 'CHANCERY_POOL_MAX_BYTES_TOTAL',
  'keyFilters.mode': 'CHANCERY_KEY_FILTERS',
  'keyFilters.maxBytes': 'CHANCERY_KEY_FILTERS_MAX_BYTES',
  'log.segmentBytes': 'CHANCERY_LOG_SEGMENT_BYTES',
  'log.retainBytes': 'CHANCERY_LOG_RETAIN_BYTES',
  validatorId: 'CHANCERY_VALIDATOR_ID',
  dataDir: 'CHANCERY_DATA_DIR',
  endpoint: 'CHANCERY_VALIDATOR_ENDPOINT',
  'rateLimit.profile': 'CHANCERY_RATE_LIMIT_PROFILE',
};
const maxMembers = 64;

/**
 * Reads a JSON merge patch (RFC 7386) into changed names and values; null restores the setting of the start. The patch is
 * applied as a whole or not at all.
 * @throws AppError invalid with every violation: POLICY_CONTROLLED for a value of the register's policy, IMMUTABLE_FIELD
 * for a setting fixed at start, INVALID_REQUEST for other names and values
 */
export function parsePatch(patch: unknown, ranges: Ranges): SettingChanges {
  const found: Violation[] = [];
  const changes = new Map<SettingName, SettingValue>();
  const members = flatten(patch);
  if (members.length === 0) found.push(violation('INVALID_REQUEST', 'The patch changes nothing'));
  for (const { name, value } of members) {
    const wrong = judge(name, value, ranges);
    if (wrong !== undefined) found.push(wrong);
    else changes.set(name as SettingName, value as SettingValue);
  }
  const [first] = found;
  if (first === undefined) return changes;
  throw new AppError('invalid', first.code, first.message, { violations: found });
}

interface PatchEntry {
  readonly name: string;
  readonly value: unknown;
}

/** Members by their dotted names; one level suffices for all names. */
function flatten(patch: unknown): PatchEntry[] {
  if (!isObject(patch)) return [{ name: '', value: patch }];
  return Object.entries(patch)
    .flatMap(([name, value]): PatchEntry[] =>
      isObject(value)
        ? Object.entries(value).map(([inner, leaf]) => ({ name: `${name}.${inner}`, value: leaf }))
        : [{ name, value }],
    )
    .slice(0, maxMembers);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function judge(name: string, value: unknown, ranges: Ranges): Violation | undefined {
  if (name === 'logLevel') {
    const isLevel = value === null || logLevels.some((level) => level === value);
    return isLevel ? undefined : violation('INVALID_REQUEST', `logLevel is one of ${logLevels}`, name);
  }
  if (Object.hasOwn(ranges, name)) return judgeNumber(name, value, ranges[name as keyof Ranges]);
  if (isOfPolicy(name)) {
    const message = `${name} is decided by the policy of each register, not here`;
    return violation('POLICY_CONTROLLED', message, name);
  }
  if (Object.hasOwn(fixed, name)) {
    const message = `${name} is set at the start (${fixed[name]}) and needs a restart`;
    return violation('IMMUTABLE_FIELD', message, name);
  }
  return violation('INVALID_REQUEST', `${name.slice(0, 128)} is no setting`, name.slice(0, 128));
}

function judgeNumber(name: string, value: unknown, { min, max }: Range): Violation | undefined {
  if (min > max) return violation('IMMUTABLE_FIELD', `${name} cannot be changed at this validator`, name);
  const isWithin =
    value === null ||
    (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max);
  if (isWithin) return undefined;
  return violation('INVALID_REQUEST', `${name} is a whole number from ${min} to ${max}`, name);
}

/** Whether the name is `consensus`, `consensus.x`, or the bare name of a policy field. */
function isOfPolicy(name: string): boolean {
  const policy: Readonly<Record<string, unknown>> = { ...defaultPolicy(), policy: {}, quorum: {} };
  const [area = '', ...rest] = name.split('.');
  const last = rest.at(-1) ?? area;
  const areas = Object.values(policy).filter(isObject);
  return Object.hasOwn(policy, area) || areas.some((one) => Object.hasOwn(one, last));
}
