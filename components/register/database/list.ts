import type { Migration } from '#kit/db/db.ts';
import { outboxMigration } from '#kit/db/outbox.ts';
import { ledgerMigration } from './migrations/0001-ledger.ts';

export const migrations: readonly Migration[] = [ledgerMigration, outboxMigration('0002-outbox')];
