import type { Docket } from '../building/docket.ts';
import type { Message } from '../consensus/messages.ts';

/** How a register's messages reach the other members. Delivery may fail, repeat and reorder; consensus copes. */
export interface Peers {
  /** `docket` comes with proposals. */
  broadcast(registerId: string, message: Message, docket: Docket | undefined): void;
  /** Asks a member for the commit of a height that was missed. */
  requestCommit(registerId: string, height: number, validatorId: string): void;
}

/** The transport of a set with one member: nobody to tell. */
export function noPeers(): Peers {
  return { broadcast: () => {}, requestCommit: () => {} };
}
