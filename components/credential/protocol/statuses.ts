import { STATUS_INVALID, STATUS_SUSPENDED, STATUS_VALID } from '#core/credential/status-list/status-list.ts';

/** Statuses of credentials, as entries of a list. */
const STATUS_VALUES = {
  Active: STATUS_VALID,
  Revoked: STATUS_INVALID,
  Suspended: STATUS_SUSPENDED,
} as const;
export type CredentialStatus = keyof typeof STATUS_VALUES;

/** Bits of an entry, and entries of a list. */
export const STATUS_BITS = 2;
export const LIST_SIZE = 131_072;

const perByte = 8 / STATUS_BITS;

/** The entry of a status. */
export function entryOf(status: CredentialStatus): number {
  return STATUS_VALUES[status];
}

/** A list in which every credential is valid. */
export function emptyStatuses(): Buffer {
  return Buffer.alloc(LIST_SIZE / perByte);
}

/** A copy of a list with one entry changed; entries begin at the least significant bits (section 4.1). */
export function withStatus(statuses: Buffer, index: number, status: CredentialStatus): Buffer {
  const changed = Buffer.from(statuses);
  const at = Math.floor(index / perByte);
  const shift = (index % perByte) * STATUS_BITS;
  const mask = (1 << STATUS_BITS) - 1;
  changed[at] = ((changed[at] ?? 0) & ~(mask << shift)) | (STATUS_VALUES[status] << shift);
  return changed;
}

const following: Readonly<Record<CredentialStatus, readonly CredentialStatus[]>> = {
  Active: ['Suspended', 'Revoked'],
  Suspended: ['Active', 'Revoked'],
  Revoked: [],
};

/** Whether a status can follow another one: a revocation is final. */
export function mayBecome(from: CredentialStatus, to: CredentialStatus): boolean {
  return following[from].includes(to);
}
