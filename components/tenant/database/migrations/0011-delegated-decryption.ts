import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

export const delegatedDecryption: Migration = {
  name: '0011-delegated-decryption',
  async up(db) {
    // Seeding does not change existing rows, so an existing principal gets its scope here.
    await sql`UPDATE service_principals SET scopes = array_append(scopes, 'wallets:decrypt')
      WHERE client_id = 'service-blueprint' AND NOT 'wallets:decrypt' = ANY (scopes)`.execute(db);
  },
};
