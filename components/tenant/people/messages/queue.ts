import { randomUUIDv7 } from 'node:crypto';
import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import type { Message } from './message.ts';
import { insertMessage } from './store.ts';

/** Queues mails and texts in the transaction of their cause: both commit or neither does. */
export interface MessageQueue {
  /**
   * Writes one row, sealed because it may hold a token or a code. It is sent at least once within seconds while its
   * transport works, and dropped after a day.
   */
  add(tx: Transactor<TenantDatabase>, message: Message, nowMs: number): Promise<void>;
  /** Text messages can be sent; the routes that need them answer 404 otherwise. */
  readonly canSendTexts: boolean;
}

export function createMessageQueue(protection: Protection, canSendTexts: boolean): MessageQueue {
  return {
    canSendTexts,
    async add(tx, message, nowMs) {
      const id = randomUUIDv7();
      const sealed = protection.seal(Buffer.from(JSON.stringify(message)), placeOfMessage(id));
      await insertMessage(tx, { id, sealed, createdAtMs: nowMs });
    },
  };
}

/** What binds a sealed message to its row. */
export function placeOfMessage(id: string): string {
  return `messages.sealed:${id}`;
}
