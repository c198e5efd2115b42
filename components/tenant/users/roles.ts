import { findRole, ROLES, type Role } from '#core/identity/roles.ts';
import { refusal } from '../errors.ts';

const aliases: Readonly<Record<string, Role>> = { member: 'User', consumer: 'User' };

/** Any case; Member and Consumer mean User. */
export function parseRole(text: string): Role | undefined {
  return findRole(text) ?? aliases[text.trim().toLowerCase()];
}

/** The roles of a list of names, each once; an empty list means User. Throws UNKNOWN_ROLE. */
export function parseRoles(names: readonly string[]): Role[] {
  const roles = names.map((name) => {
    const role = parseRole(name);
    if (role === undefined) throw refusal('UNKNOWN_ROLE', { details: { errors: { roles: [name] } } });
    return role;
  });
  return roles.length === 0 ? ['User'] : [...new Set(roles)];
}

/** Nobody grants above the own rank, and SystemAdmin exists in the system organisation only. */
export function mayGrant(grantorRoles: readonly Role[], role: Role, inSystemOrganization: boolean): boolean {
  if (role === 'SystemAdmin' && !inSystemOrganization) return false;
  return rankOf(grantorRoles) <= ROLES.indexOf(role);
}

function rankOf(roles: readonly Role[]): number {
  return Math.min(ROLES.length, ...roles.map((role) => ROLES.indexOf(role)));
}
