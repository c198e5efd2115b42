import { createHash } from 'node:crypto';
import type { KeyUsage } from '../../database/schema.ts';

/** First level of the paths of derived keys: 0x534f52, hardened. */
const PURPOSE = 5_459_794;

const USAGE_INDEXES = {
  Identity: 0,
  VCIssuance: 1,
  Governance: 2,
  Communications: 3,
  ServiceAuth: 4,
} as const satisfies Record<KeyUsage, number>;

export const KEY_USAGES = Object.keys(USAGE_INDEXES) as KeyUsage[];

/** A key that an organisation derives for one of its members. */
export interface DerivedKeyName {
  /** UUID */
  readonly organizationId: string;
  /** 0 to 2^31 - 1 */
  readonly departmentId: number;
  /** UUID of the platform user */
  readonly userId: string;
  readonly usage: KeyUsage;
}

/**
 * The path `m/5459794'/{organisation}'/{department}'/{user}'/{usage}'/{index}'` of a derived key below the seed of the
 * organisation. Every level is hardened; organisation and user are the first 31 bits of a SHA-256 over the UUID.
 * @param index 0 for the first key of the name, one more for each successor
 */
export function derivedKeyPath(name: DerivedKeyName, index: number): string {
  const { organizationId, departmentId, userId, usage } = name;
  const levels = [
    PURPOSE,
    index31(organizationId),
    departmentId,
    index31(userId),
    USAGE_INDEXES[usage],
    index,
  ];
  return `m/${levels.map((level) => `${level}'`).join('/')}`;
}

function index31(uuid: string): number {
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex');
  return createHash('sha256').update(bytes).digest().readUInt32BE(0) & 0x7fff_ffff;
}
