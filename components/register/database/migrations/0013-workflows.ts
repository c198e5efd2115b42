import { type Kysely, sql } from 'kysely';

/**
 * A mark beside the keys of steps, so that a predecessor that is none costs no further read, and indexes by which steps
 * and publications are read in ledger order. Steps were not judged before, so transactions that are sealed already are
 * none, whatever their metadata say; the column is null for them, and for other transactions.
 *
 * Validators announce what their rules cover, and participants publish a key for encryption beside their key.
 */
const statements = [
  sql`alter table transaction_ids add column is_step boolean`,
  sql`create index transaction_ids_steps on transaction_ids (register_no, docket_number, position) where is_step`,
  sql`create index blueprint_publications_position
    on blueprint_publications (register_no, docket_number, position)`,
  sql`alter table validator_directory add column features text[] not null default '{}'`,
  sql`alter table participant_keys add column encryption_algorithm text, add column encryption_key text`,
];

export const workflowsMigration = {
  name: '0013-workflows',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
