import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import { type Message, type MessageTransports, messageSchema, UndeliverableError } from './message.ts';
import { placeOfMessage } from './queue.ts';
import { deleteMessage, leaseMessage, postponeMessage } from './store.ts';

/** Longer than a transport may take for one message. */
const leaseMs = 60_000;
const keptMs = 86_400_000;
const longestWaitMs = 5 * 60_000;

/** What became of a message. `late`: it was not sent within a day. */
export type Sent = 'sent' | 'failed' | 'undeliverable' | 'late';

interface SenderDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly protection: Protection;
  readonly transports: MessageTransports;
  readonly count: (channel: Message['channel'], outcome: Sent) => void;
}

/** Sends queued messages; of several replicas one at a time has a message. */
export interface MessageSender {
  /** Sends what is due, one message after the other, until nothing is due or `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** @throws when mails have no transport, or the last one was not accepted */
  assertMail(): void;
}

export function createMessageSender(deps: SenderDeps): MessageSender {
  let mailFault = deps.transports.mail === undefined ? 'no transport for mails is configured' : undefined;
  return {
    async run(signal) {
      while (!signal.aborted) {
        const leased = await lease(deps);
        if (leased === undefined) return;
        const { outcome, fault } = await send(deps, leased);
        if (leased.message.channel === 'mail' && deps.transports.mail !== undefined) mailFault = fault;
        deps.count(leased.message.channel, outcome);
        await settle(deps, leased, outcome);
      }
    },
    assertMail() {
      if (mailFault !== undefined) throw new Error(mailFault);
    },
  };
}

interface Leased {
  readonly id: string;
  readonly attempts: number;
  readonly createdAtMs: number;
  readonly message: Message;
}

async function lease({ db, clock, protection }: SenderDeps): Promise<Leased | undefined> {
  const atMs = clock.nowMs();
  const row = await db.transact((tx) => leaseMessage(tx, { atMs, untilMs: atMs + leaseMs }));
  if (row === undefined) return undefined;
  const text = protection.open(row.sealed, placeOfMessage(row.id)).toString();
  const { id, attempts, createdAtMs } = row;
  return { id, attempts, createdAtMs, message: messageSchema.parse(JSON.parse(text)) };
}

interface Attempted {
  readonly outcome: Sent;
  readonly fault?: string;
}

async function send({ clock, log, transports }: SenderDeps, leased: Leased): Promise<Attempted> {
  const { id, message, createdAtMs } = leased;
  const { channel } = message;
  if (clock.nowMs() - createdAtMs > keptMs) {
    log.warn({ messageId: id, channel }, 'a message is dropped: it could not be sent within a day');
    return { outcome: 'late', fault: 'mails wait for longer than a day' };
  }
  try {
    await deliver(transports, id, message);
    return { outcome: 'sent' };
  } catch (error) {
    if (error instanceof UndeliverableError) {
      // Its text may quote the address, which logs do not hold.
      log.warn({ messageId: id, channel }, 'a message is dropped: its receiver is refused for good');
      return { outcome: 'undeliverable' };
    }
    const fault = error instanceof Error ? error.message : 'failed';
    if (leased.attempts === 1)
      log.warn({ messageId: id, channel, fault }, 'a message waits: it was not accepted');
    return { outcome: 'failed', fault: `the last mail was not accepted: ${fault}` };
  }
}

async function deliver(transports: MessageTransports, id: string, message: Message): Promise<void> {
  if (message.channel === 'none') return;
  if (message.channel === 'mail') await configured(transports.mail).send(id, message);
  else await configured(transports.sms).send(id, message);
}

function configured<Transport>(transport: Transport | undefined): Transport {
  if (transport === undefined) throw new Error('no transport is configured');
  return transport;
}

async function settle({ db, clock }: SenderDeps, leased: Leased, outcome: Sent): Promise<void> {
  const { id, attempts } = leased;
  if (outcome !== 'failed') return db.transact((tx) => deleteMessage(tx, id));
  const waitMs = Math.min(1_000 * 2 ** Math.min(attempts - 1, 10), longestWaitMs);
  return db.transact((tx) => postponeMessage(tx, id, clock.nowMs() + waitMs));
}
