import type { Caller } from '#core/identity/claims.ts';
import { decide, mayActFor } from '#core/identity/policies.ts';
import { refusal } from '../errors.ts';

/** Whether the caller has a platform token of a SystemAdmin in the system organisation. */
export function isSystemAdministrator(caller: Caller): boolean {
  return decide('RequireSystemAdmin', caller) === 'allow';
}

/** @throws FOREIGN_ORGANIZATION unless the caller's token is of this organisation or of a system administrator */
export function requireCallerOrganization(caller: Caller, organizationId: string): void {
  if (!mayActFor(caller, organizationId)) throw refusal('FOREIGN_ORGANIZATION');
}
