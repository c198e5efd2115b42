import type { ServerResponse } from 'node:http';
import type { Transport, TransportEvents } from './transport.ts';

const prefix = Buffer.from('data: ');
const suffix = Buffer.from('\r\n\r\n');

/** The transport over a stream of server-sent events (HTML, section 9.2); the client sends by POST. */
export function eventStreamTransport(
  response: ServerResponse,
  events: TransportEvents,
  closeMs: number,
): Transport {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-store',
    'x-accel-buffering': 'no',
  });
  response.flushHeaders();
  response.on('close', () => events.onGone());
  const write = (records: Buffer) => response.write(Buffer.concat([prefix, records, suffix]));
  return {
    name: 'ServerSentEvents',
    isPinged: true,
    unsentBytes: () => response.writableLength,
    send: (records) => void write(records),
    end: (last) => {
      if (last.length > 0) write(last);
      response.end();
      const late = setTimeout(() => response.destroy(), closeMs);
      late.unref();
      response.once('close', () => clearTimeout(late));
    },
    tick: () => true,
  };
}
