import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

/** Accounts whose password was given by others and has to be replaced. */
export const passwordChange: Migration = {
  name: '0015-password-change',
  async up(db) {
    await sql`alter table platform_users
      add column password_change_required boolean not null default false`.execute(db);
  },
};
