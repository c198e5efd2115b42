import { sha256Hex } from '#core/crypto/hash.ts';

/** The id of a transaction's receipt, derived from the docket that sealed it. */
export function receiptIdOf(sealed: {
  readonly registerId: string;
  readonly txId: string;
  readonly docketHash: string;
}): string {
  return sha256Hex(`${sealed.registerId}:${sealed.txId}:${sealed.docketHash}`).slice(0, 32);
}
