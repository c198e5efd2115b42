import type { Migration } from '#kit/db/db.ts';
import { outboxMigration } from '#kit/db/outbox.ts';
import { ledgerMigration } from './migrations/0001-ledger.ts';
import { replaysMigration } from './migrations/0003-replays.ts';
import { idempotencyKeysMigration } from './migrations/0004-idempotency-keys.ts';
import { governanceMigration } from './migrations/0005-governance.ts';
import { managedRegistersMigration } from './migrations/0006-managed-registers.ts';
import { queriesMigration } from './migrations/0007-queries.ts';
import { segmentsMigration } from './migrations/0008-segments.ts';
import { publicationsMigration } from './migrations/0009-publications.ts';
import { typesMigration } from './migrations/0010-types.ts';

export const migrations: readonly Migration[] = [
  ledgerMigration,
  outboxMigration('0002-outbox'),
  replaysMigration,
  idempotencyKeysMigration,
  governanceMigration,
  managedRegistersMigration,
  queriesMigration,
  segmentsMigration,
  publicationsMigration,
  typesMigration,
];
