import type { Clock } from '#kit/clock/clock.ts';
import type { Job } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import type { CredentialDatabase } from './database/schema.ts';
import { deleteExpiredAuthorizations } from './issuer/authorization/store.ts';
import { forgetUsed } from './issuer/nonces/store.ts';
import { expireOffers } from './issuer/offers/store.ts';
import { deleteExpiredTokens } from './issuer/tokens/store.ts';
import { tidyRequests } from './verifier/requests/store.ts';

const everyMs = 60_000;
/** How long verified claims are kept behind the answer. */
const claimsMs = 15 * 60_000;

/** Deletes what has expired: personal data of offers, tokens, nonces that were used, verified claims. */
export function expiry({ db, clock }: { db: Database<CredentialDatabase>; clock: Clock }): Job {
  return {
    name: 'expiry',
    everyMs,
    run: async () => {
      const now = new Date(clock.nowMs());
      await db.transact((tx) => expireOffers(tx, now));
      await db.transact((tx) => deleteExpiredTokens(tx, now));
      await db.transact((tx) => deleteExpiredAuthorizations(tx, now));
      await db.transact((tx) => forgetUsed(tx, now));
      const claimsBefore = new Date(now.getTime() - claimsMs);
      await db.transact((tx) => tidyRequests(tx, { now, claimsBefore }));
    },
  };
}
