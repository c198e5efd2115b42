import { parseRegister, type Register } from '../../api/register.ts';
import { parseTenant, type Tenant } from '../../api/tenant.ts';
import { parseValidatorSet, type ValidatorSet } from '../../api/validator-set.ts';

type Members = Readonly<Record<string, unknown>>;

export const UIDS = {
  tenant: '0b0e6a1e-7b57-4c0f-9d0f-2d8f3f1c9a11',
  register: '7d8d3c52-52f5-4a55-8b53-94a0a2f0aa01',
  other: '1f2e3d4c-5b6a-4798-8a9b-0c1d2e3f4a5b',
} as const;
export const ORGANIZATION_ID = '3a3f6c0e-91b4-4f0e-8f7a-56b2c1d0e9f8';
export const REGISTER_ID = '0123456789abcdef0123456789abcdef';
export const OWNER = `w1${'q'.repeat(59)}`;
export const ADMIN = `w1${'p'.repeat(59)}`;
const CREATED = '2026-01-01T00:00:00Z';
export const NOW_MS = Date.parse('2026-01-01T00:00:10Z');

interface ObjectParts {
  readonly metadata?: Members;
  readonly status?: Members;
}

function object(kind: string, name: string, uid: string, { metadata = {}, status = {} }: ObjectParts) {
  return {
    apiVersion: 'chancery.dev/v1alpha1',
    kind,
    metadata: { name, namespace: 'acme', uid, generation: 1, creationTimestamp: CREATED, ...metadata },
    status,
  };
}

/** A Tenant called acme. */
export function tenantOf(spec: Members = {}, parts: ObjectParts = {}): Tenant {
  const full = { displayName: 'Acme', subdomain: 'acme', ...spec };
  return parseTenant({ ...object('Tenant', 'acme', UIDS.tenant, parts), spec: full });
}

/** A Tenant with an organisation. */
export function readyTenant(): Tenant {
  return tenantOf({}, { status: { organizationId: ORGANIZATION_ID, state: 'Active' } });
}

/** A Register called invoices. */
export function registerOf(spec: Members = {}, parts: ObjectParts = {}): Register {
  const full = { title: 'Invoices', tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' }, ...spec };
  return parseRegister({ ...object('Register', 'invoices', UIDS.register, parts), spec: full });
}

export interface SetOptions {
  readonly name?: string;
  /** Running members with a key; all of them when absent. */
  readonly usable?: number;
  readonly spec?: Members;
}

/** A ValidatorSet whose first members run. */
export function setOf(
  replicas: number,
  { name = 'main', usable = replicas, spec = {} }: SetOptions = {},
): ValidatorSet {
  const members = Array.from({ length: Math.max(usable, replicas) }, (_, ordinal) => ({
    name: `${name}-${ordinal}`,
    ordinal,
    ready: ordinal < usable,
    phase: ordinal < usable ? 'KeyReady' : 'Provisioning',
    ...(ordinal < usable ? { validatorId: `validator-${name}-${ordinal}` } : {}),
  }));
  return parseValidatorSet({
    ...object('ValidatorSet', name, UIDS.other, { status: { members } }),
    spec: { replicas, ...spec },
  });
}
