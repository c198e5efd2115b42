import { findRole, ROLES, type Role } from '#core/identity/roles.ts';

const aliases: Readonly<Record<string, Role>> = { member: 'User', consumer: 'User' };

/** Any case; Member and Consumer mean User. */
export function parseRole(text: string): Role | undefined {
  return findRole(text) ?? aliases[text.trim().toLowerCase()];
}

/** Nobody grants above the own rank, and SystemAdmin exists in the system organisation only. */
export function mayGrant(grantorRoles: readonly Role[], role: Role, inSystemOrganization: boolean): boolean {
  if (role === 'SystemAdmin' && !inSystemOrganization) return false;
  return rankOf(grantorRoles) <= ROLES.indexOf(role);
}

function rankOf(roles: readonly Role[]): number {
  return Math.min(ROLES.length, ...roles.map((role) => ROLES.indexOf(role)));
}
