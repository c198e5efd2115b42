import { canonicalBytes, canonicalJson } from '../../encoding/jcs.ts';
import { isJsonObject, type JsonObject } from '../../encoding/json.ts';
import { compareCodeUnits } from '../../encoding/text.ts';
import { AppError } from '../../errors/errors.ts';
import { EVERYTHING } from '../pointer.ts';
import { type ClearPayload, ENVELOPE_LIMITS, type Envelope } from './envelope.ts';

/** What one wallet may read of an action's data. */
export interface WalletDisclosure {
  readonly address: string;
  /** Pointers that disclose it. */
  readonly pointers: readonly string[];
  readonly data: JsonObject;
}

/** A group before it is sealed: the wallets that read the same data. */
export interface PlannedGroup {
  /** Addresses, sorted by code units, at least one. */
  readonly recipients: readonly string[];
  /** Pointers that disclose the data, sorted by code units. */
  readonly fields: readonly string[];
  readonly data: JsonObject;
}

/**
 * Plans the groups of an action: one for each distinct data, by canonical JSON. Every address is in exactly one group:
 * the disclosures of a wallet that plays several roles are united first. Groups are ordered by their first recipients,
 * which says nothing about the data.
 *
 * @throws AppError unprocessable TOO_MANY_GROUPS above 16, TOO_MANY_RECIPIENTS above 64 in one
 */
export function planGroups(disclosures: readonly WalletDisclosure[]): readonly PlannedGroup[] {
  const byData = new Map<string, WalletDisclosure[]>();
  for (const disclosure of uniteByAddress(disclosures)) {
    const text = canonicalJson(disclosure.data);
    byData.set(text, [...(byData.get(text) ?? []), disclosure]);
  }
  const groups = [...byData.values()].map(groupOf).sort(byFirstRecipient);
  if (groups.length > ENVELOPE_LIMITS.groups) {
    throw refuse('TOO_MANY_GROUPS', `The recipients read ${groups.length} different views; at most 16`);
  }
  if (groups.some(({ recipients }) => recipients.length > ENVELOPE_LIMITS.recipients)) {
    throw refuse('TOO_MANY_RECIPIENTS', 'More than 64 recipients read the same data');
  }
  return groups;
}

function refuse(code: string, message: string): AppError {
  return new AppError('unprocessable', code, message);
}

function uniteByAddress(disclosures: readonly WalletDisclosure[]): Iterable<WalletDisclosure> {
  const united = new Map<string, WalletDisclosure>();
  for (const each of disclosures) {
    const before = united.get(each.address);
    const pointers = [...(before?.pointers ?? []), ...each.pointers];
    const data = before === undefined ? each.data : mergeViews(before.data, each.data);
    united.set(each.address, { address: each.address, pointers, data });
  }
  return united.values();
}

/** Two views of the same data, united: they differ only in members that one of them lacks. */
export function mergeViews(left: JsonObject, right: JsonObject): JsonObject {
  const both = Object.entries(right).map(([name, value]): [string, unknown] => {
    const other = Object.hasOwn(left, name) ? left[name] : undefined;
    return [name, isJsonObject(other) && isJsonObject(value) ? mergeViews(other, value) : value];
  });
  return { ...left, ...Object.fromEntries(both) };
}

function groupOf(disclosures: readonly WalletDisclosure[]): PlannedGroup {
  const pointers = new Set(disclosures.flatMap((each) => each.pointers));
  return {
    recipients: disclosures.map(({ address }) => address).sort(compareCodeUnits),
    fields: pointers.has(EVERYTHING) ? [EVERYTHING] : [...pointers].sort(compareCodeUnits),
    data: disclosures[0]?.data ?? {},
  };
}

function byFirstRecipient(left: PlannedGroup, right: PlannedGroup): number {
  return compareCodeUnits(left.recipients[0] ?? '', right.recipients[0] ?? '');
}

/**
 * The bytes of a payload: canonical JSON.
 * @param maxBytes largest payload of the register
 * @throws AppError too_large PAYLOAD_TOO_LARGE
 */
export function payloadBytes(payload: Envelope | ClearPayload, maxBytes: number): Uint8Array {
  const bytes = canonicalBytes(payload);
  if (bytes.length <= maxBytes) return bytes;
  throw new AppError(
    'too_large',
    'PAYLOAD_TOO_LARGE',
    `The payload has ${bytes.length} bytes; at most ${maxBytes}`,
  );
}
