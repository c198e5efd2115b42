import type { Migration } from '#kit/db/db.ts';
import { outboxMigration } from '#kit/db/outbox.ts';
import { ledgerMigration } from './0001-ledger.ts';
import { replaysMigration } from './0003-replays.ts';
import { idempotencyKeysMigration } from './0004-idempotency-keys.ts';
import { governanceMigration } from './0005-governance.ts';
import { managedRegistersMigration } from './0006-managed-registers.ts';
import { queriesMigration } from './0007-queries.ts';
import { segmentsMigration } from './0008-segments.ts';
import { publicationsMigration } from './0009-publications.ts';
import { typesMigration } from './0010-types.ts';
import { valuesMigration } from './0011-values.ts';
import { hubsMigration } from './0012-hubs.ts';
import { workflowsMigration } from './0013-workflows.ts';
import { revokedKeysMigration } from './0014-revoked-keys.ts';

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
  valuesMigration,
  hubsMigration,
  workflowsMigration,
  revokedKeysMigration,
];
