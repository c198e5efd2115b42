import type { Database } from '#kit/db/db.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { TenantDatabase } from '../../database/schema.ts';
import type { Protection } from '../../tokens/keys/protection.ts';
import { createMessageQueue, type MessageQueue } from './queue.ts';
import { createMessageSender, type MessageSender } from './sender.ts';
import { createTransports } from './transports.ts';

interface MessageParts {
  readonly config: Parameters<typeof createTransports>[0];
  readonly runtime: Runtime;
  readonly db: Database<TenantDatabase>;
  readonly protection: Protection;
}

/** Queue and sender of mails and text messages, by the transports of the settings. */
export function createMessages({ config, runtime, db, protection }: MessageParts): {
  readonly messages: MessageQueue;
  readonly messageSender: MessageSender;
} {
  const { clock, log, telemetry } = runtime;
  const transports = createTransports(config, clock);
  const outcomes = telemetry.counter('messages_total', 'Mails and text messages, by what became of them', [
    'channel',
    'outcome',
  ]);
  const count = (channel: string, outcome: string) => outcomes.inc({ channel, outcome });
  return {
    messages: createMessageQueue(protection, transports.sms !== undefined),
    messageSender: createMessageSender({ db, clock, log, protection, transports, count }),
  };
}
