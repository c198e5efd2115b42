import { isAppError } from '#core/errors/errors.ts';
import type { Database } from '#kit/db/db.ts';
import { securityCap } from '#kit/rate-limit/security-cap.ts';
import type { TenantDatabase } from '../../database/schema.ts';

/** What makes a mail that its receiver may not have asked for. */
type Cause = 'registration' | 'password-forgotten' | 'address-change';

const mailsPerHour = 10;

/**
 * Counts a mail that anyone can cause, by its address and cause: no mailbox is flooded through this installation. The
 * request that is not mailed any more gets the same answer, after the same statements.
 */
export async function mayMail(db: Database<TenantDatabase>, address: string, cause: Cause): Promise<boolean> {
  try {
    await securityCap(db, { name: `mail-${cause}`, key: address, limit: mailsPerHour, windowSeconds: 3_600 });
    return true;
  } catch (error) {
    if (isAppError(error, 'rate_limited')) return false;
    throw error;
  }
}
