import { sql } from 'kysely';
import type { Migration } from '#kit/db/db.ts';

const statements = [
  // UID of the custom resource that manages the organisation; unique among organisations.
  'ALTER TABLE organizations ADD COLUMN resource_uid uuid UNIQUE',
  'ALTER TABLE organizations ADD COLUMN version bigint NOT NULL DEFAULT 1',
  'ALTER TABLE organizations ADD COLUMN purged_at timestamptz',
  `CREATE INDEX organizations_to_purge ON organizations (deleted_at)
    WHERE deleted_at IS NOT NULL AND purged_at IS NULL`,
  // Seeding does not change existing rows, so an existing operator principal gets its scope here.
  `UPDATE service_principals SET scopes = array_append(scopes, 'organizations:write')
    WHERE client_id = 'service-operator' AND NOT 'organizations:write' = ANY (scopes)`,
];

export const organizationResources: Migration = {
  name: '0006-organization-resources',
  async up(db) {
    for (const statement of statements) await sql.raw(statement).execute(db);
  },
};
