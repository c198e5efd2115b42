import { findRole, ROLES, type Role } from '#core/identity/roles.ts';
import { refusal } from '../../errors.ts';

const aliases: Readonly<Record<string, Role>> = { member: 'User', consumer: 'User' };

/** Case-insensitive; Member and Consumer mean User. */
export function parseRole(text: string): Role | undefined {
  return findRole(text) ?? aliases[text.trim().toLowerCase()];
}

/** The distinct roles of a list of names; an empty list means User. @throws UNKNOWN_ROLE */
export function parseRoles(names: readonly string[]): Role[] {
  const roles = names.map((name) => {
    const role = parseRole(name);
    if (role === undefined) throw refusal('UNKNOWN_ROLE', { details: { errors: { roles: [name] } } });
    return role;
  });
  return roles.length === 0 ? ['User'] : [...new Set(roles)];
}

/** A caller cannot grant a role above the own rank; SystemAdmin exists only in the system organisation. */
export function mayGrant(grantorRoles: readonly Role[], role: Role, inSystemOrganization: boolean): boolean {
  if (role === 'SystemAdmin' && !inSystemOrganization) return false;
  return rankOf(grantorRoles) <= ROLES.indexOf(role);
}

function rankOf(roles: readonly Role[]): number {
  return Math.min(ROLES.length, ...roles.map((role) => ROLES.indexOf(role)));
}
