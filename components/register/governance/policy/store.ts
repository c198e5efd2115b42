import { sql } from 'kysely';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { PolicyKind, PolicyVersion } from '../rules/store.ts';

/** Versions of a policy, newest first. */
export async function listPolicyVersions(
  db: Reader<RegisterSchema>,
  of: { readonly registerNo: number; readonly kind: PolicyKind },
  window: { readonly offset: number; readonly limit: number },
): Promise<{ items: PolicyVersion[]; total: number }> {
  const rows = db
    .selectFrom('policy_versions')
    .where('register_no', '=', of.registerNo)
    .where('kind', '=', of.kind);
  const items = await rows
    .selectAll()
    .orderBy('version', 'desc')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const counted = await rows.select(sql<number>`count(*)::int`.as('total')).executeTakeFirst();
  return {
    items: items.map((row) => ({
      kind: of.kind,
      version: row.version,
      document: row.document,
      docketNumber: row.docket_number,
      txId: row.tx_id,
      updatedAt: row.updated_at,
      updatedBy: row.updated_by ?? undefined,
    })),
    total: counted?.total ?? 0,
  };
}
