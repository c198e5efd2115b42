const registerPrefix = 'register:';
const tenantPrefix = 'tenant:';

/** Connections that subscribe to a register. */
export function registerGroup(registerId: string): string {
  return `${registerPrefix}${registerId}`;
}

/** Connections that subscribe to the registers of an organisation. */
export function tenantGroup(organizationId: string): string {
  return `${tenantPrefix}${organizationId}`;
}

/** The register of a group; undefined for the group of an organisation. */
export function registerOfGroup(group: string): string | undefined {
  return group.startsWith(registerPrefix) ? group.slice(registerPrefix.length) : undefined;
}
