import { describe, expect, test } from 'vitest';
import { KINDS } from './kinds.ts';
import { parseRegister } from './register.ts';
import { structuralSchema } from './structural.ts';
import { parseTenant } from './tenant.ts';
import { goodSpecs } from './testing/bad-objects.ts';
import { parseValidatorSet } from './validator-set.ts';

const apiVersion = 'chancery.dev/v1alpha1';

/** Applies defaults as the API server does: first to an absent member, then to the members below it. */
function withDefaults(schema: Record<string, unknown>, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const filled: Record<string, unknown> = { ...value };
  for (const [name, member] of Object.entries((schema['properties'] ?? {}) as Record<string, object>)) {
    const node = member as Record<string, unknown>;
    if (filled[name] === undefined && node['default'] !== undefined) filled[name] = node['default'];
    if (filled[name] !== undefined) filled[name] = withDefaults(node, filled[name]);
  }
  return filled;
}

test.each(KINDS)('the schema of a $kind has the defaults of its parser', ({ kind, spec }) => {
  const least = goodSpecs[kind];
  expect(withDefaults(structuralSchema(spec), least)).toEqual(spec.parse(least));
});

describe('a parsed object', () => {
  test('has the defaults that the API server applies', () => {
    const set = parseValidatorSet({ apiVersion, kind: 'ValidatorSet', metadata: { name: 'main' }, spec: {} });
    expect(set.spec).toEqual({
      replicas: 4,
      suspend: false,
      registration: { mode: 'Consent', autoApprove: true },
      mempool: { maxPerRegister: 10_000, maxBytesPerRegister: '64Mi', maxBytesTotal: '256Mi' },
      storage: { size: '1Gi' },
      service: { port: 5000, type: 'ClusterIP' },
      update: { strategy: 'QuorumAware', minReadySeconds: 10, maxBehindDockets: 1, paused: false },
    });
    const register = parseRegister({
      apiVersion,
      kind: 'Register',
      metadata: { name: 'invoices' },
      spec: { title: 'Invoices', tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } },
    });
    expect(register.spec).toEqual({
      title: 'Invoices',
      purpose: 'General',
      tenantRef: { name: 'acme' },
      validatorSetRef: { name: 'main' },
      owners: [{ operatorWallet: true }],
      devMode: false,
      transitionMode: 'Immediate',
      validation: 'Running',
      deletionPolicy: 'Retain',
    });
  });

  test('has quantities as text, also where YAML has a number', () => {
    const set = parseValidatorSet({
      apiVersion,
      kind: 'ValidatorSet',
      metadata: { name: 'main' },
      spec: { resources: { requests: { cpu: 2, memory: '1Gi' } } },
    });
    expect(set.spec.resources?.requests).toEqual({ cpu: '2', memory: '1Gi' });
  });

  test('tolerates unknown metadata and an unreadable status', () => {
    const tenant = parseTenant({
      apiVersion,
      kind: 'Tenant',
      metadata: {
        name: 'acme',
        namespace: 'prod',
        uid: 'u',
        generation: 3,
        managedFields: [{ manager: 'kubectl' }],
        finalizers: ['example.org/mine'],
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
      },
      spec: { displayName: 'Acme', subdomain: 'acme' },
      status: { state: 'NewerWord', userCount: 4, conditions: 'broken', surplus: { a: 1 } },
    });
    expect(tenant.metadata).toMatchObject({ name: 'acme', generation: 3, finalizers: ['example.org/mine'] });
    expect(tenant.status).toEqual({ userCount: 4 });
  });

  test('has an empty status before the first reconcile', () => {
    const desired = { displayName: 'Acme', subdomain: 'acme' };
    for (const status of [undefined, {}, 'broken', null]) {
      const found = parseTenant({
        apiVersion,
        kind: 'Tenant',
        metadata: { name: 'acme' },
        spec: desired,
        status,
      });
      expect(found.status).toEqual({});
    }
  });
});

test('a refusal names each field and its remedy', () => {
  const parse = () =>
    parseTenant({
      apiVersion,
      kind: 'Tenant',
      metadata: { name: 'acme' },
      spec: { displayName: 'A', subdomain: 'www', quota: {} },
    });
  expect(parse).toThrow(/^Tenant is not valid: spec\.displayName: write 3 to 100 characters$/);
  try {
    parse();
  } catch (error) {
    expect(error).toMatchObject({ kind: 'invalid', code: 'INVALID_CUSTOM_RESOURCE' });
    expect((error as { violations: { field: string }[] }).violations.map((each) => each.field)).toEqual([
      'spec.displayName',
      'spec.subdomain',
      'spec',
    ]);
  }
});

test.each([
  ['another kind', { apiVersion, kind: 'Register', metadata: { name: 'a' }, spec: {} }],
  ['another version', { apiVersion: 'chancery.dev/v2', kind: 'Tenant', metadata: { name: 'a' }, spec: {} }],
  ['nothing', null],
  ['a list', []],
])('%s is refused', (_what, value) => {
  expect(() => parseTenant(value)).toThrow('Tenant is not valid');
});
