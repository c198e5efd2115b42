import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import { liftCap, refundCap, securityCap } from '#kit/rate-limit/security-cap.ts';
import type { TenantDatabase } from '../../database/schema.ts';

/** Maximum number of failures in one window: per address, and separately per address and known network. */
const maxFailuresPerWindow = 5;
const failureWindowSeconds = 60;
const maxWaiting = 256;
/** Maximum number of queued attempts for one address. */
export const maxWaitingPerAddress = 8;

/** The key by which guesses are counted. */
interface GuessPool {
  readonly email: string;
  /** Set when the account has signed in from this network: guesses from other networks do not use up its share. */
  readonly knownNetwork?: string | undefined;
}

/**
 * Counts every guess before the password is checked and removes a right one again, so that parallel guesses count too.
 */
export interface GuessCap {
  /** Runs the attempts for one address sequentially in this process. @throws AppError rate_limited or unavailable */
  inTurn<T>(email: string, attempt: () => Promise<T>): Promise<T>;
  /**
   * Counts the outcome 'wrong' as a failure. @throws AppError rate_limited when the failures of the window are used up
   */
  guard<T>(pool: GuessPool, judge: () => Promise<T | 'wrong'>): Promise<T | 'wrong'>;
}

/** The database stores the counts for all replicas. */
export function createGuessCap(db: Database<TenantDatabase>): GuessCap {
  return {
    inTurn: createLines(),
    async guard(pool, judge) {
      const cap = capOf(pool);
      await securityCap(db, { ...cap, limit: maxFailuresPerWindow, windowSeconds: failureWindowSeconds });
      const outcome = await judge();
      if (outcome !== 'wrong') await refundCap(db, cap);
      return outcome;
    },
  };
}

/** Clears the guesses of the current minute after an administrator has unlocked the account. */
export async function liftGuessCaps(
  db: Database<TenantDatabase>,
  email: string,
  knownNetworks: Iterable<string>,
): Promise<void> {
  await liftCap(db, capOf({ email }));
  for (const knownNetwork of knownNetworks) await liftCap(db, capOf({ email, knownNetwork }));
}

function capOf({ email, knownNetwork }: GuessPool): { readonly name: string; readonly key: string } {
  return knownNetwork === undefined
    ? { name: 'login-email', key: email }
    : { name: 'login-network', key: JSON.stringify([email, knownNetwork]) };
}

interface Line {
  waiting: number;
  last: Promise<unknown>;
}

function createLines(): GuessCap['inTurn'] {
  const queues = new Map<string, Line>();
  let waiting = 0;
  return async (email, attempt) => {
    const queue = queues.get(email) ?? { waiting: 0, last: Promise.resolve() };
    if (queue.waiting >= maxWaitingPerAddress) throw busy('rate_limited');
    if (waiting >= maxWaiting) throw busy('unavailable');
    waiting++;
    queue.waiting++;
    queues.set(email, queue);
    const turn = queue.last.then(attempt);
    queue.last = turn.then(nothing, nothing);
    try {
      return await turn;
    } finally {
      waiting--;
      queue.waiting--;
      if (queue.waiting === 0) queues.delete(email);
    }
  };
}

function busy(kind: 'rate_limited' | 'unavailable'): AppError {
  const message = 'Too many sign-ins are being processed; try again shortly.';
  return new AppError(kind, genericCode(kind), message, { retryAfterSeconds: 1 });
}

function nothing(): void {
  // the next attempt runs independent of the outcome of this one
}
