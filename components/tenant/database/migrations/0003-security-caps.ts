import type { Migration } from '#kit/db/db.ts';
import { securityCapMigration } from '#kit/rate-limit/security-cap.ts';

export const securityCaps: Migration = securityCapMigration('0003-security-caps');
