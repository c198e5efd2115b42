import { type Kysely, sql } from 'kysely';

const statements = [
  sql`alter table pushed_requests add column dpop_thumbprint text`,
  sql`alter table authorization_codes add column dpop_thumbprint text`,
];

export const boundCodes = {
  name: '0009-bound-codes',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
