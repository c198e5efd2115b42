import type { Clock } from '#kit/clock/clock.ts';
import type { Job } from '#kit/clock/jobs.ts';
import type { Database, Transactor } from '#kit/db/db.ts';
import { deleteExpired, EXPIRING } from './database/expiry.ts';
import type { CredentialDatabase } from './database/schema.ts';
import { expireOffers } from './issuer/offers/store.ts';
import { eraseClaims, expireRequests } from './verifier/requests/store.ts';

const everyMs = 60_000;
/** Time from an answer until the claims that it verified are erased. */
const claimsMs = 15 * 60_000;
/** Rows of one transaction. */
const most = 1_000;

type Step = (tx: Transactor<CredentialDatabase>) => Promise<number>;

/** Deletes all that has expired: personal data of offers, tokens, nonces that were used, verified claims. */
export function expiry({ db, clock }: { db: Database<CredentialDatabase>; clock: Clock }): Job {
  return {
    name: 'expiry',
    everyMs,
    run: async (signal) => {
      const now = new Date(clock.nowMs());
      const answeredBefore = new Date(now.getTime() - claimsMs);
      const steps: readonly Step[] = [
        (tx) => expireOffers(tx, { now, most }),
        (tx) => expireRequests(tx, { now, most }),
        (tx) => eraseClaims(tx, { answeredBefore, most }),
        ...EXPIRING.map(
          (table): Step =>
            (tx) =>
              deleteExpired(tx, table, { now, most }),
        ),
      ];
      for (const step of steps) {
        let count = most;
        while (count === most && !signal.aborted) count = await db.transact(step);
      }
    },
  };
}
