import { contextSlot, PAYLOAD_ENCRYPTION, PRIMARY_SLOT, slotPath } from '../custody/contexts.ts';

/** The two keys of a wallet that decrypt. */
export type KeyUse = 'primary' | 'payload-encryption';

/** The `kid` of a JWE for a key: `{address}`, or `{address}#platform:payload-encryption`. */
export function keyId(address: string, use: KeyUse): string {
  return use === 'primary' ? address : `${address}#${PAYLOAD_ENCRYPTION}`;
}

/** The key of the wallet that a `kid` names; undefined for any other one. */
export function findKeyUse(kid: string, address: string): KeyUse | undefined {
  return (['primary', 'payload-encryption'] as const).find((use) => keyId(address, use) === kid);
}

/** The derivation path of a key. */
export function keyPath(use: KeyUse): string {
  return slotPath(use === 'primary' ? PRIMARY_SLOT : contextSlot(PAYLOAD_ENCRYPTION));
}
