import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import { liftCap, securityCap } from '#kit/rate-limit/security-cap.ts';
import type { TenantDatabase } from '../database/schema.ts';

/** At most this many failures per e-mail address, known or not, in one window. */
export const maxFailuresPerWindow = 5;
export const failureWindowSeconds = 60;
const capName = 'login-email';
const maxWaiting = 256;

/** Counts every guess before it is judged and forgets them on a right one, so parallel guesses count too. */
export interface GuessCap {
  /** Throws `rate_limited` when the address has had its failures; 'wrong' is what counts as one. */
  guard<T>(email: string, judge: () => Promise<T | 'wrong'>): Promise<T | 'wrong'>;
}

/** Held across replicas by the database. Attempts for one address go one after the other in this process. */
export function createGuessCap(db: Database<TenantDatabase>): GuessCap {
  const lines = new Map<string, Promise<unknown>>();
  let waiting = 0;
  return {
    async guard(email, judge) {
      if (waiting >= maxWaiting) {
        const message = 'Too many sign-ins are being processed; try again shortly.';
        throw new AppError('unavailable', genericCode('unavailable'), message, { retryAfterSeconds: 1 });
      }
      waiting++;
      const before = lines.get(email) ?? Promise.resolve();
      const turn = before.then(() => judgeOnce(db, email, judge));
      const settled = turn.then(nothing, nothing);
      lines.set(email, settled);
      try {
        return await turn;
      } finally {
        waiting--;
        if (lines.get(email) === settled) lines.delete(email);
      }
    },
  };
}

async function judgeOnce<T>(
  db: Database<TenantDatabase>,
  email: string,
  judge: () => Promise<T | 'wrong'>,
): Promise<T | 'wrong'> {
  const cap = { name: capName, key: email };
  await securityCap(db, { ...cap, limit: maxFailuresPerWindow, windowSeconds: failureWindowSeconds });
  const outcome = await judge();
  if (outcome !== 'wrong') await liftCap(db, cap);
  return outcome;
}

function nothing(): void {
  // the next attempt goes ahead whatever became of this one
}
