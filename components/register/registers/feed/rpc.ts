import { AppError } from '#core/errors/errors.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RpcHandlers, RpcServer } from '#kit/rpc/rpc.ts';
import { EventService } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { RegisterSchema } from '../../database/schema.ts';
import { formatFeedCursor, parseFeedCursor } from './cursor.ts';
import { readFeed } from './feed.ts';

const defaultLimit = 500;
const mostEvents = 1_000;
/** Services that read the registers of all organisations. */
const readers: readonly string[] = ['service-blueprint', 'service-peer'];

/**
 * Serves the feed to consumers that keep their own cursor; `doorbell.register.events` is published when there is more.
 */
export function eventHandlers(db: Reader<RegisterSchema>): RpcHandlers<(typeof EventService)['method']> {
  return {
    async readEvents({ after, limit: requested }) {
      const cursor = parseFeedCursor(after);
      if (cursor === undefined)
        throw new AppError('invalid', 'INVALID_REQUEST', 'The cursor was not issued by this service.');
      const limit = requested === 0 ? defaultLimit : Math.min(requested, mostEvents);
      const page = await readFeed(db, cursor, limit);
      return {
        events: page.events.map(({ id, kind, data }) => ({ id, kind, data: JSON.stringify(data) })),
        cursor: formatFeedCursor(page.cursor),
        complete: page.complete,
      };
    },
  };
}

export function addEventService(server: RpcServer, db: Reader<RegisterSchema>): void {
  server.add(EventService, eventHandlers(db), {
    allow: ({ clientId }) => readers.includes(clientId),
    requireToken: true,
  });
}
