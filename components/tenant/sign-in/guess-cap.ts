import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import { liftCap, refundCap, securityCap } from '#kit/rate-limit/security-cap.ts';
import type { TenantDatabase } from '../database/schema.ts';

/** At most this many failures in one window: of an address, and apart from that of an address from each known network. */
export const maxFailuresPerWindow = 5;
export const failureWindowSeconds = 60;
const maxWaiting = 256;
/** Of the waiting places, so many for one address. */
export const maxWaitingPerAddress = 8;

/** What guesses are counted by. */
export interface GuessPool {
  readonly email: string;
  /** Set when the account has signed in from there: guesses from elsewhere do not use up its share. */
  readonly knownNetwork?: string | undefined;
}

/** Counts every guess before it is judged and takes a right one back, so parallel guesses count too. */
export interface GuessCap {
  /** Attempts for one address run one after the other in this process. Throws `rate_limited`, or `unavailable`. */
  inTurn<T>(email: string, attempt: () => Promise<T>): Promise<T>;
  /** Throws `rate_limited` when the pool has had its failures; 'wrong' is what counts as one. */
  guard<T>(pool: GuessPool, judge: () => Promise<T | 'wrong'>): Promise<T | 'wrong'>;
}

/** The counts are held across replicas by the database. */
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

/** Forgets the guesses of a minute, after an administrator has unlocked the account. */
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
  const lines = new Map<string, Line>();
  let waiting = 0;
  return async (email, attempt) => {
    const line = lines.get(email) ?? { waiting: 0, last: Promise.resolve() };
    if (line.waiting >= maxWaitingPerAddress) throw busy('rate_limited');
    if (waiting >= maxWaiting) throw busy('unavailable');
    waiting++;
    line.waiting++;
    lines.set(email, line);
    const turn = line.last.then(attempt);
    line.last = turn.then(nothing, nothing);
    try {
      return await turn;
    } finally {
      waiting--;
      line.waiting--;
      if (line.waiting === 0) lines.delete(email);
    }
  };
}

function busy(kind: 'rate_limited' | 'unavailable'): AppError {
  const message = 'Too many sign-ins are being processed; try again shortly.';
  return new AppError(kind, genericCode(kind), message, { retryAfterSeconds: 1 });
}

function nothing(): void {
  // the next attempt runs whatever became of this one
}
