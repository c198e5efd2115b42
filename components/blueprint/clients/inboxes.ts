import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createServiceClient } from '#kit/http/http.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import type { PeerOptions } from './peer.ts';

/** An entry for the inbox of a person. */
export interface InboxEntry {
  readonly platformUserId: string;
  readonly category: 'Action';
  readonly severity: 'ActionRequired';
  /** Groups entries about one instance. */
  readonly correlationKey: string;
  readonly title: string;
  readonly summary?: string | undefined;
  readonly detailHref: string;
  /** One entry a person and event, however often it is written. */
  readonly sourceEventId: string;
  /** ISO 8601. */
  readonly occurredAt: string;
}

/** Inboxes of people in the tenant service. */
export interface Inboxes {
  /**
   * Writes an entry; a repetition writes none, and a person without an account gets none.
   * @throws AppError unavailable, timeout
   */
  write(entry: InboxEntry): Promise<void>;
}

/** The tenant service over HTTP; it connects on the first call. */
export function connectInboxes(address: Endpoint, options: PeerOptions): Inboxes & { close(): void } {
  const { workload, token } = options;
  const expect = serviceSpiffeId(workload.trustDomain, 'service-tenant');
  const client = createServiceClient({ workload, address, expect });
  return {
    write: async (entry) => {
      const bearer = await token();
      const { status } = await client.call({
        method: 'POST',
        path: '/api/internal/inbox',
        bearer,
        body: entry,
      });
      if (status === 200 || status === 201 || status === 404) return;
      const message = `the tenant service answers ${status} to an inbox entry`;
      throw new AppError('unavailable', genericCode('unavailable'), message);
    },
    close: () => client.close(),
  };
}
