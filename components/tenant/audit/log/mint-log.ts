import type { Clock } from '#kit/clock/clock.ts';
import type { AuditEvent } from './event.ts';

/** Mints of one principal with one kind of credential since the last flush. */
interface MintCount {
  readonly clientId: string;
  readonly credential: string;
  readonly principalId: string;
  occurrences: number;
  firstAtMs: number;
}

/**
 * Service tokens are minted too often for one row each. One row per principal, kind of credential and flush stores
 * their number. The size is bounded by the number of principals.
 */
export interface MintLog {
  count(principalId: string, clientId: string, credential: string): void;
  flush(): Promise<void>;
}

interface MintLogOptions {
  readonly clock: Clock;
  readonly organizationId: string;
  readonly append: (events: AuditEvent[]) => Promise<void>;
}

export function createMintLog(options: MintLogOptions): MintLog {
  let counts = new Map<string, MintCount>();
  return {
    count(principalId, clientId, credential) {
      const key = `${clientId} ${credential}`;
      const seen = counts.get(key);
      if (seen !== undefined) {
        seen.occurrences++;
        return;
      }
      const firstAtMs = options.clock.nowMs();
      counts.set(key, { clientId, credential, principalId, occurrences: 1, firstAtMs });
    },
    async flush() {
      if (counts.size === 0) return;
      const flushed = counts;
      counts = new Map();
      try {
        await options.append([...flushed.values()].map((one) => toEvent(one, options.organizationId)));
      } catch (cause) {
        restore(counts, flushed);
        throw cause;
      }
    },
  };
}

function restore(counts: Map<string, MintCount>, flushed: ReadonlyMap<string, MintCount>): void {
  for (const [key, one] of flushed) {
    const newer = counts.get(key);
    counts.set(key, newer === undefined ? one : { ...one, occurrences: one.occurrences + newer.occurrences });
  }
}

function toEvent(one: MintCount, organizationId: string): AuditEvent {
  const { clientId, credential, occurrences } = one;
  return {
    organizationId,
    occurredAtMs: one.firstAtMs,
    type: 'TokenIssued',
    success: true,
    details: { clientId, principalId: one.principalId, credential, occurrences },
  };
}
