import { z } from 'zod';

/** A mail or a text message to one person, in plain text. */
export const messageSchema = z.discriminatedUnion('channel', [
  z.object({ channel: z.literal('mail'), to: z.string(), subject: z.string(), text: z.string() }),
  z.object({ channel: z.literal('sms'), to: z.string(), text: z.string() }),
  // A row like the others that is not sent, so that requests about known and unknown addresses do the same work.
  z.object({ channel: z.literal('none') }),
]);
export type Message = z.output<typeof messageSchema>;
export type Mail = Extract<Message, { channel: 'mail' }>;
export type TextMessage = Extract<Message, { channel: 'sms' }>;

/** Sends what is queued; `id` stays the same when it is tried again, so that receivers may drop a repetition. */
export interface MessageTransport<Of extends Message> {
  /** @throws when the message was not accepted; it is tried again */
  send(id: string, message: Of): Promise<void>;
}

/** How messages leave this installation; a channel that is absent is not configured. */
export interface MessageTransports {
  readonly mail?: MessageTransport<Mail> | undefined;
  readonly sms?: MessageTransport<TextMessage> | undefined;
}

/** A message that the receiver refuses for good, for example an address that does not exist: it is not tried again. */
export class UndeliverableError extends Error {}
