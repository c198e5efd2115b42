import type { Caller } from '#core/identity/claims.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Registers } from '../../clients/registers.ts';

/** The caller of a request with the token that it was made with. */
export interface Subject {
  readonly caller: Caller;
  readonly bearer: string;
}

/** Whether a caller may read a register. Errors: unavailable REGISTER_UNAVAILABLE, timeout. */
export type CanRead = (subject: Subject, registerId: string) => Promise<boolean>;

const keptMs = 30_000;
const mostKept = 10_000;

/**
 * Asks the register service with the caller's own token, and remembers what it allowed to an organisation for 30 s.
 * Services read every register.
 */
export function createCanRead({
  registers,
  clock,
}: {
  readonly registers: Pick<Registers, 'canRead'>;
  readonly clock: Clock;
}): CanRead {
  const allowed = new Map<string, number>();
  return async ({ caller, bearer }, registerId) => {
    if (caller.kind === 'service') return true;
    const key = `${caller.organizationId ?? caller.subject} ${registerId}`;
    if ((allowed.get(key) ?? 0) > clock.nowMs()) return true;
    const isAllowed = await registers.canRead(bearer, registerId);
    if (!isAllowed) return false;
    if (allowed.size >= mostKept) allowed.clear();
    allowed.set(key, clock.nowMs() + keptMs);
    return true;
  };
}
