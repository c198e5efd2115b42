import { AppError } from '../errors/errors.ts';

/** Scopes of service tokens (notes/identity.md 3.7, decision D29). */
export const SCOPES = [
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
  'wallets:sign',
  'wallets:status',
] as const;
export type Scope = (typeof SCOPES)[number];

/** The workloads of an installation; each has one principal, validators one a member (decision D28). */
export const SERVICE_NAMES = [
  'gateway',
  'tenant',
  'wallet',
  'register',
  'validator',
  'peer',
  'blueprint',
  'credential',
  'operator',
] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

const DEFAULT_SCOPES: Readonly<Record<ServiceName, readonly Scope[]>> = {
  gateway: [],
  tenant: ['persona:crypto', 'wallets:status'],
  wallet: ['registers:write', 'registers:read', 'devices:write', 'inbox:write', 'audit:write'],
  register: ['wallets:sign', 'validator:write'],
  validator: ['dockets:write', 'registers:write', 'registers:read', 'blueprints:read'],
  peer: ['dockets:write', 'registers:write', 'registers:read'],
  blueprint: ['wallets:sign', 'registers:write', 'blueprints:manage', 'inbox:write', 'audit:write'],
  credential: ['registers:read', 'wallets:sign'],
  operator: ['principals:write', 'organizations:write', 'registers:write', 'registers:read', 'wallets:sign'],
};

/** Scopes that a principal of that workload gets when it is seeded. */
export function defaultScopes(service: ServiceName): readonly Scope[] {
  return DEFAULT_SCOPES[service];
}

/** Whether tokens of that workload carry `can_sign_system` (decision D29): register and validators. */
export function mayHoldSystemSigning(service: ServiceName): boolean {
  return service === 'register' || service === 'validator';
}

/** Whether a text is a scope we know. */
export function isScope(text: string): text is Scope {
  return SCOPES.some((scope) => scope === text);
}

/** The workload a client id belongs to: `service-{name}`, or `validator-{member}` (decision D28). */
export function findServiceName(clientId: string): ServiceName | undefined {
  if (/^validator-[a-z0-9][a-z0-9.-]*$/.test(clientId)) return 'validator';
  const name = clientId.startsWith('service-') ? clientId.slice('service-'.length) : '';
  return SERVICE_NAMES.find((service) => service === name && service !== 'validator');
}

/** The workload of a client id; throws AppError invalid UNKNOWN_CLIENT_ID. */
export function parseServiceName(clientId: string): ServiceName {
  const name = findServiceName(clientId);
  if (name === undefined) throw new AppError('invalid', 'UNKNOWN_CLIENT_ID', 'Client id names no workload');
  return name;
}

/** Scopes of a `scope` claim: a space-separated text or a list (notes/identity.md 3.3). */
export function parseScopeClaim(claim: string | readonly string[] | undefined): string[] {
  if (claim === undefined) return [];
  const texts = typeof claim === 'string' ? [claim] : claim;
  return [...new Set(texts.flatMap((text) => text.split(' ')).filter((scope) => scope !== ''))];
}
