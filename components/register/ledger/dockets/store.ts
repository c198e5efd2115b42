import type { ConsensusVote } from '#core/ledger/attestation.ts';
import type { Reader, Transactor } from '#kit/db/db.ts';
import type { DocketRow, RegisterSchema } from '../../database/schema.ts';

export type StoredDocket = Omit<DocketRow, 'register_no'>;

const columns = [
  'docket_number',
  'hash',
  'previous_hash',
  'merkle_root',
  'log_root',
  'validator_set_hash',
  'timestamp',
  'validator_address',
  'is_genesis',
  'genesis_config',
  'size_bytes',
  'transaction_count',
  'first_ordinal',
  'certificate',
  'stored_at',
] as const;

type Db = Reader<RegisterSchema>;

export async function findDocket(
  db: Db,
  registerNo: number,
  key: { readonly docketNumber: number } | { readonly hash: string } | 'latest',
): Promise<StoredDocket | undefined> {
  const rows = db.selectFrom('dockets').select(columns).where('register_no', '=', registerNo);
  if (key === 'latest') return rows.orderBy('docket_number', 'desc').limit(1).executeTakeFirst();
  if ('hash' in key) return rows.where('hash', '=', key.hash).executeTakeFirst();
  return rows.where('docket_number', '=', key.docketNumber).executeTakeFirst();
}

/** Dockets with numbers in [from, to], newest or oldest first. */
export async function listDockets(
  db: Db,
  registerNo: number,
  range: {
    readonly from: number;
    readonly to: number;
    readonly order: 'asc' | 'desc';
    readonly limit: number;
  },
): Promise<StoredDocket[]> {
  return db
    .selectFrom('dockets')
    .select(columns)
    .where('register_no', '=', registerNo)
    .where('docket_number', '>=', range.from)
    .where('docket_number', '<=', range.to)
    .orderBy('docket_number', range.order)
    .limit(range.limit)
    .execute();
}

export async function attestationsOf(
  db: Db,
  registerNo: number,
  docketNumbers: readonly number[],
): Promise<{ docketNumber: number; attestation: ConsensusVote }[]> {
  if (docketNumbers.length === 0) return [];
  const rows = await db
    .selectFrom('docket_attestations')
    .select(['docket_number', 'attestation'])
    .where('register_no', '=', registerNo)
    .where('docket_number', 'in', docketNumbers)
    .orderBy('docket_number')
    .orderBy('validator_address')
    .execute();
  return rows.map((row) => ({
    docketNumber: row.docket_number,
    attestation: row.attestation as ConsensusVote,
  }));
}

/** Adds an attestation to a stored docket; the first one of a validator wins. */
export async function insertAttestation(
  tx: Transactor<RegisterSchema>,
  at: { readonly registerNo: number; readonly docketNumber: number },
  attestation: ConsensusVote,
): Promise<void> {
  await tx
    .insertInto('docket_attestations')
    .values({
      register_no: at.registerNo,
      docket_number: at.docketNumber,
      validator_address: attestation.validatorAddress,
      attestation: JSON.stringify(attestation),
    })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
