import { sql } from 'kysely';
import type { ProposalStatus } from '#core/ledger/governance/operation.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import type { Operation, ProposalRow } from '../rules/store.ts';

type Db = Reader<RegisterSchema>;

interface Window {
  readonly offset: number;
  readonly limit: number;
}

interface Listed<T> {
  readonly items: T[];
  readonly total: number;
}

/** Governance operations of a register, newest first. */
export async function listOperations(db: Db, registerNo: number, window: Window): Promise<Listed<Operation>> {
  const rows = db.selectFrom('governance_operations').where('register_no', '=', registerNo);
  const items = await rows
    .selectAll()
    .orderBy('docket_number', 'desc')
    .orderBy('position', 'desc')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const counted = await rows.select(sql<number>`count(*)::int`.as('total')).executeTakeFirst();
  return {
    items: items.map((row) => ({
      docketNumber: row.docket_number,
      position: row.position,
      txId: row.tx_id,
      operationType: row.operation_type,
      proposalId: row.proposal_id ?? undefined,
      proposer: row.proposer ?? undefined,
      target: row.target ?? undefined,
      detail: row.detail,
      sealedAt: row.sealed_at,
    })),
    total: counted?.total ?? 0,
  };
}

const proposalColumns = [
  'proposal_id as proposalId',
  'status',
  'opened_docket as openedDocket',
  'closed_docket as closedDocket',
  'expires_at as expiresAt',
  'proposal',
] as const;

type ProposalColumns = Omit<ProposalRow, 'closedDocket'> & { readonly closedDocket: number | null };

function proposalOf(row: ProposalColumns): ProposalRow {
  return { ...row, closedDocket: row.closedDocket ?? undefined };
}

/** Proposals of a register, newest first; filtered by status when one is given. */
export async function listProposals(
  db: Db,
  registerNo: number,
  status: ProposalStatus | undefined,
  window: Window,
): Promise<Listed<ProposalRow>> {
  let rows = db.selectFrom('governance_proposals').where('register_no', '=', registerNo);
  if (status !== undefined) rows = rows.where('status', '=', status);
  const items = await rows
    .select(proposalColumns)
    .orderBy('opened_docket', 'desc')
    .orderBy('proposal_id')
    .offset(window.offset)
    .limit(window.limit)
    .execute();
  const counted = await rows.select(sql<number>`count(*)::int`.as('total')).executeTakeFirst();
  return { items: items.map(proposalOf), total: counted?.total ?? 0 };
}

export async function findProposal(
  db: Db,
  registerNo: number,
  proposalId: string,
): Promise<ProposalRow | undefined> {
  const row = await db
    .selectFrom('governance_proposals')
    .select(proposalColumns)
    .where('register_no', '=', registerNo)
    .where('proposal_id', '=', proposalId)
    .executeTakeFirst();
  return row && proposalOf(row);
}

/** Proposals that are approved and not enacted, oldest first, of all registers that are not deleted. */
export async function listApproved(
  db: Db,
): Promise<{ readonly registerId: string; readonly proposalId: string }[]> {
  return db
    .selectFrom('governance_proposals as p')
    .innerJoin('registers as r', 'r.register_no', 'p.register_no')
    .select(['r.register_id as registerId', 'p.proposal_id as proposalId'])
    .where('p.status', '=', 'Approved')
    .where('r.deleted_at', 'is', null)
    .orderBy('p.opened_docket')
    .limit(256)
    .execute();
}
