import type { Job } from '#kit/clock/jobs.ts';
import { pruneEvents } from '#kit/db/outbox.ts';
import { pruneCaps } from '#kit/rate-limit/security-cap.ts';
import type { Parts, Tenant } from './assemble.ts';
import { pruneAudit } from './audit/log/store.ts';
import { purgeDeletedOrganizations } from './organizations/purge.ts';
import { reportLocks } from './sign-in/lockout/report-locks.ts';
import { pruneLadders } from './sign-in/lockout/store.ts';
import { pruneSecrets } from './tokens/one-time/store.ts';
import { pruneRevocations } from './tokens/revocations/store.ts';
import { pruneFamilies } from './tokens/sessions/store.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
const auditBatch = 5_000;
/** The hub replays a day of events. */
const keptEventsDays = 2;

/** Periodic jobs of the service: key rotation, the mint log, and deletion of expired rows. */
export function upkeepJobs(
  parts: Pick<Parts, 'db' | 'runtime'>,
  tenant: Pick<Tenant, 'keys' | 'mintLog' | 'messageSender' | 'notifyInboxes'>,
): Job[] {
  const { db, runtime } = parts;
  const { clock } = runtime;
  const { notifyInboxes } = tenant;
  return [
    { name: 'signing-keys', everyMs: minuteMs, run: () => tenant.keys.refresh() },
    { name: 'mint-log', everyMs: 1_000, run: () => tenant.mintLog.flush() },
    { name: 'messages', everyMs: 1_000, run: (signal) => tenant.messageSender.run(signal) },
    {
      name: 'expired-rows',
      everyMs: 10 * minuteMs,
      run: async () => {
        const nowMs = clock.nowMs();
        await pruneCaps(db);
        await db.transact(async (tx) => {
          await pruneRevocations(tx, nowMs);
          await pruneFamilies(tx, nowMs - dayMs);
          await pruneLadders(tx, nowMs);
          await pruneSecrets(tx, nowMs - dayMs);
          await pruneEvents(tx, keptEventsDays);
        });
      },
    },
    { name: 'lock-reports', everyMs: 5_000, run: () => reportLocks({ db, clock, notifyInboxes }) },
    {
      name: 'deleted-organizations',
      everyMs: 60 * minuteMs,
      run: () => purgeDeletedOrganizations({ db, clock }),
    },
    {
      name: 'audit-retention',
      everyMs: 60 * minuteMs,
      run: async () => {
        let removed = auditBatch;
        while (removed === auditBatch) {
          removed = await db.transact((tx) => pruneAudit(tx, clock.nowMs(), auditBatch));
        }
      },
    },
  ];
}
