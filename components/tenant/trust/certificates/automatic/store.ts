import type { Transactor } from '#kit/db/db.ts';
import type { TenantDatabase } from '../../../database/schema.ts';

type DB = TenantDatabase;

/** An organisation whose first wallet waits for its certificate. */
export interface RequestedEnrolment {
  readonly organizationId: string;
  readonly walletAddress: string;
  readonly tries: number;
}

/** Requests the certificate of an organisation that has never had one; nothing when it had, or does not exist. */
export async function requestEnrolment(
  tx: Transactor<DB>,
  { organizationId, walletAddress }: Omit<RequestedEnrolment, 'tries'>,
  at: Date,
): Promise<void> {
  const organization = await tx
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('organization_certificates as certificate')
            .select('certificate.id')
            .whereRef('certificate.organization_id', '=', 'organizations.id'),
        ),
      ),
    )
    .executeTakeFirst();
  if (organization === undefined) return;
  await tx
    .insertInto('requested_enrolments')
    .values({ organization_id: organizationId, wallet_address: walletAddress, next_try_at: at })
    .onConflict((conflict) => conflict.column('organization_id').doNothing())
    .execute();
}

/** Takes requests that are due until a time: each is one replica's. */
export async function takeRequested(
  tx: Transactor<DB>,
  { now, until, most }: { readonly now: Date; readonly until: Date; readonly most: number },
): Promise<readonly RequestedEnrolment[]> {
  const due = tx
    .selectFrom('requested_enrolments')
    .select('organization_id')
    .where('next_try_at', '<=', now)
    .orderBy('next_try_at')
    .limit(most)
    .forUpdate()
    .skipLocked();
  const rows = await tx
    .updateTable('requested_enrolments')
    .set({ next_try_at: until })
    .where('organization_id', 'in', due)
    .returningAll()
    .execute();
  return rows.map((row) => ({
    organizationId: row.organization_id,
    walletAddress: row.wallet_address,
    tries: row.tries,
  }));
}

export async function repeatRequest(
  tx: Transactor<DB>,
  organizationId: string,
  { tries, at }: { readonly tries: number; readonly at: Date },
): Promise<void> {
  await tx
    .updateTable('requested_enrolments')
    .set({ tries, next_try_at: at })
    .where('organization_id', '=', organizationId)
    .execute();
}

export async function endRequest(tx: Transactor<DB>, organizationId: string): Promise<void> {
  await tx.deleteFrom('requested_enrolments').where('organization_id', '=', organizationId).execute();
}
