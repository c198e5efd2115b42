/** Roles of a member in an organisation (specification document 1, section 5; Designer of identity.md 3.4). */
export const ROLES = ['SystemAdmin', 'Administrator', 'Designer', 'Auditor', 'User'] as const;
export type Role = (typeof ROLES)[number];

/** Whether a text is a role, to the letter. */
export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

/** The role a text names in any case; undefined for anything else. */
export function findRole(text: string): Role | undefined {
  return ROLES.find((role) => role.toLowerCase() === text.trim().toLowerCase());
}

/** The role of a list that comes first in the order of ROLES: the highest one. */
export function highestRole(roles: readonly Role[]): Role | undefined {
  return ROLES.find((role) => roles.includes(role));
}
