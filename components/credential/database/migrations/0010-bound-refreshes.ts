import { type Kysely, sql } from 'kysely';

/** The instance of the wallet that a refresh token is bound to; null in rows of earlier builds. */
export const boundRefreshes = {
  name: '0010-bound-refreshes',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`alter table refresh_tokens add column client_thumbprint text`.execute(db);
  },
};
