import { registerStatusChanged } from '#core/events/register-events.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import { appendEvent } from '#kit/db/outbox.ts';
import { currentTraceId } from '#kit/telemetry/telemetry.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { RegisterStatus } from '../../registers/state/store.ts';
import { subscribersOf } from '../../registers/subscriptions/store.ts';

/** A docket that a quorum certified for a height at which another one is stored. */
interface Conflict {
  readonly registerNo: number;
  readonly registerId: string;
  readonly header: DocketHeader;
  /** JSON text of the certificate */
  readonly certificate: string;
  readonly seenAt: Date;
}

export interface SeenConflict {
  readonly docketNumber: number;
  /** of the docket that is not stored */
  readonly hash: string;
  readonly storedHash: string | null;
  /** JSON text */
  readonly header: string;
  /** JSON text */
  readonly certificate: string;
  readonly seenAt: Date;
}

interface StatusChange {
  readonly registerNo: number;
  readonly registerId: string;
  readonly from: readonly RegisterStatus[];
  readonly to: RegisterStatus;
  readonly at: Date;
}

/** Changes the status if it is one of the expected ones, and writes the event to the outbox. */
async function changeStatus(tx: Transactor<RegisterSchema>, change: StatusChange): Promise<boolean> {
  const updated = await tx
    .updateTable('registers')
    .set({ status: change.to, updated_at: change.at })
    .where('register_no', '=', change.registerNo)
    .where('status', 'in', change.from)
    .returning('register_no')
    .execute();
  if (updated.length === 0) return false;
  const { registerId, registerNo, to: status } = change;
  const organizationIds = await subscribersOf(tx, registerNo);
  await appendEvent(
    tx,
    registerStatusChanged({ registerId, status, organizationIds, traceId: currentTraceId() }),
  );
  return true;
}

/** Stores the proof of a conflict and halts the register. A known conflict does not halt it a second time. */
export async function recordConflict(tx: Transactor<RegisterSchema>, conflict: Conflict): Promise<boolean> {
  const { registerNo, registerId, header, certificate, seenAt } = conflict;
  const inserted = await tx
    .insertInto('docket_conflicts')
    .values({
      register_no: registerNo,
      docket_number: header.docketNumber,
      hash: header.hash,
      header: JSON.stringify(header),
      certificate,
      seen_at: seenAt,
    })
    .onConflict((clash) => clash.doNothing())
    .returning('hash')
    .execute();
  if (inserted.length === 0) return false;
  const from = ['Checking', 'Online', 'Recovery', 'Offline'] as const;
  return changeStatus(tx, { registerNo, registerId, from, to: 'Halted', at: seenAt });
}

/** Resumes a halted register; false when it is not halted. */
export function resume(
  tx: Transactor<RegisterSchema>,
  register: { readonly registerNo: number; readonly registerId: string; readonly at: Date },
): Promise<boolean> {
  return changeStatus(tx, { ...register, from: ['Halted'], to: 'Online' });
}

/** Conflicts of a register, newest first. */
export async function listConflicts(db: Reader<RegisterSchema>, registerNo: number): Promise<SeenConflict[]> {
  return db
    .selectFrom('docket_conflicts as c')
    .leftJoin('dockets as d', (join) =>
      join.onRef('d.register_no', '=', 'c.register_no').onRef('d.docket_number', '=', 'c.docket_number'),
    )
    .select([
      'c.docket_number as docketNumber',
      'c.hash',
      'd.hash as storedHash',
      'c.header',
      'c.certificate',
    ])
    .select('c.seen_at as seenAt')
    .where('c.register_no', '=', registerNo)
    .orderBy('seen_at', 'desc')
    .limit(100)
    .execute();
}
