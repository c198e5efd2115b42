import { type Kysely, sql } from 'kysely';

const statements = [
  sql`alter table pushed_requests add column has_details boolean not null default false`,
  sql`alter table authorization_codes add column has_details boolean not null default false`,
];

/** Whether a wallet asked by `authorization_details`, which the token response then has too. */
export const askedDetails = {
  name: '0011-asked-details',
  async up(db: Kysely<unknown>): Promise<void> {
    for (const statement of statements) await statement.execute(db);
  },
};
