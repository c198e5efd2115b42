/** Scopes of service tokens. The catalogue of services lists the scopes of each service. */
const SCOPES = [
  'audit:write',
  'blueprints:manage',
  'blueprints:read',
  'devices:write',
  'dockets:write',
  'inbox:write',
  'organizations:write',
  'persona:crypto',
  'principals:write',
  'registers:read',
  'registers:write',
  'tenant:delegate',
  'validator:write',
  'wallets:decrypt',
  'wallets:sign',
  'wallets:status',
] as const;
export type Scope = (typeof SCOPES)[number];

/** Whether a text is a known scope. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}

/** Scopes of a `scope` claim: a space-separated text or a list. */
export function parseScopeClaim(claim: string | readonly string[] | undefined): string[] {
  if (claim === undefined) return [];
  const texts = typeof claim === 'string' ? [claim] : claim;
  return [...new Set(texts.flatMap((text) => text.split(' ')).filter((scope) => scope !== ''))];
}
