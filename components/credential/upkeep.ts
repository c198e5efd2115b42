import type { Clock } from '#kit/clock/clock.ts';
import type { Job } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from './database/schema.ts';
import { forgetUsed } from './nonces/store.ts';
import { expireOffers } from './offers/store.ts';
import { deleteExpiredTokens } from './tokens/store.ts';

const everyMs = 60_000;

/** Deletes what has expired: personal data of offers, tokens, nonces that were used. */
export function expiry({ db, clock }: { db: Database<CredentialDatabase>; clock: Clock }): Job {
  return {
    name: 'expiry',
    everyMs,
    run: async () => {
      const now = new Date(clock.nowMs());
      await db.transact((tx) => expireOffers(tx, now));
      await db.transact((tx) => deleteExpiredTokens(tx, now));
      await db.transact((tx) => forgetUsed(tx, now));
    },
  };
}
