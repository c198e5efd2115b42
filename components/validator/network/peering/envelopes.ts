import { encodeHex } from '#core/encoding/hex.ts';
import type { Docket } from '../../chain/building/docket.ts';
import type { Message } from '../../chain/consensus/messages.ts';
import type { Envelope } from '../transport/transport.ts';

/** The envelope of a message; undefined for a proposal whose docket is not available. */
export function envelopeOf(
  registerId: string,
  message: Message,
  docket: Docket | undefined,
): Envelope | undefined {
  if (message.kind !== 'proposal') return { kind: 'vote', registerId, vote: message };
  if (docket === undefined) return undefined;
  const recordHashes = docket.transactions.map((transaction) => encodeHex(transaction.leaf));
  return { kind: 'proposal', registerId, proposal: message, header: docket.header, recordHashes };
}
