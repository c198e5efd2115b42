import { sql } from 'kysely';
import { idempotencyMigration } from '#kit/db/idempotency.ts';

/** Moves the idempotency keys, with the ids of their resources, into the table layout of kit. */
export const idempotencyKeys = idempotencyMigration(
  '0004-idempotency-keys',
  sql`SELECT
      sha256(convert_to('[' || to_json(owner) || ',' || to_json(key) || ']', 'UTF8')),
      body_hash,
      resource_id,
      created_at
    FROM idempotency_keys`,
);
