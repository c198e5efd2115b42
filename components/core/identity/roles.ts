/** Roles of a member in an organisation (specification document 1, section 5), and Designer, which edits blueprints. */
export const ROLES = ['SystemAdmin', 'Administrator', 'Designer', 'Auditor', 'User'] as const;
export type Role = (typeof ROLES)[number];

/** Whether a text is exactly the name of a role. */
export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text);
}

/** Finds the role that a text names in any case; undefined for anything else. */
export function findRole(text: string): Role | undefined {
  return ROLES.find((role) => role.toLowerCase() === text.trim().toLowerCase());
}

/** The highest role of a list: the first one in the order of ROLES. */
export function highestRole(roles: readonly Role[]): Role | undefined {
  return ROLES.find((role) => roles.includes(role));
}
