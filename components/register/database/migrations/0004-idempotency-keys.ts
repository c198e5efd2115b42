import { sql } from 'kysely';
import { idempotencyMigration } from '#kit/db/idempotency.ts';

/**
 * Moves the idempotency keys and their stored answers into the shared table format, so that a request repeated across
 * the upgrade finds its answer.
 */
export const idempotencyKeysMigration = idempotencyMigration(
  '0004-idempotency-keys',
  sql`select
      sha256(convert_to('[' || to_json(scope) || ',' || to_json(key) || ']', 'UTF8')),
      decode(body_hash, 'hex'),
      case when status is not null then json_build_object('status', status, 'body', body)::text end,
      claimed_at
    from idempotency_keys`,
);
