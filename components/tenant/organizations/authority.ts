import type { Caller } from '#core/identity/claims.ts';
import { decide, mayActFor } from '#core/identity/policies.ts';
import { refusal } from '../errors.ts';

/** SystemAdmin of the system organisation, in a platform token. */
export function isSystemAdministrator(caller: Caller): boolean {
  return decide('RequireSystemAdmin', caller) === 'allow';
}

/** Throws FOREIGN_ORGANIZATION unless the caller acts in this organisation or administers the system. */
export function requireCallerOrganization(caller: Caller, organizationId: string): void {
  if (!mayActFor(caller, organizationId)) throw refusal('FOREIGN_ORGANIZATION');
}
