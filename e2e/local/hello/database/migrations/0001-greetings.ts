import { type Kysely, sql } from 'kysely';

export const greetings = {
  name: '0001-greetings',
  async up(db: Kysely<unknown>): Promise<void> {
    await sql`CREATE TABLE greetings (subject text PRIMARY KEY, greeting text NOT NULL)`.execute(db);
  },
};
