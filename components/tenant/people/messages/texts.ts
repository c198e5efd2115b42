import { createHmac } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type MessageTransport, type TextMessage, UndeliverableError } from './message.ts';
import type { Webhook } from './webhook.ts';

const timeoutMs = 10_000;

/**
 * Posts `{id, to, text}` to a service of the operator's choice, which sends the text message. The header
 * `X-Chancery-Signature: t=SECONDS,v1=HEX` has the HMAC-SHA-256 of `SECONDS.BODY` under the shared secret; `id` is the
 * same when a message is sent again.
 */
export function createSmsWebhook(
  { url, secret }: Webhook,
  nowMs: () => number,
): MessageTransport<TextMessage> {
  return {
    async send(id, { to, text }) {
      const body = JSON.stringify({ id, to, text });
      const seconds = Math.floor(nowMs() / 1000);
      const signature = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex');
      const answer = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-chancery-signature': `t=${seconds},v1=${signature}`,
        },
        body,
        redirect: 'error',
        signal: AbortSignal.timeout(timeoutMs),
      });
      await answer.body?.cancel();
      if (answer.status === 422) throw new UndeliverableError('the webhook refuses the number');
      if (!answer.ok) throw new Error(`the webhook answered ${answer.status}`);
    },
  };
}

/** Writes each text message as a file `ID.txt`: the number, an empty line, the text. */
export function createSmsFolder(directory: string): MessageTransport<TextMessage> {
  return {
    send: (id, { to, text }) =>
      writeFile(join(directory, `${id}.txt`), `${to}\n\n${text}\n`, { mode: 0o600 }),
  };
}
