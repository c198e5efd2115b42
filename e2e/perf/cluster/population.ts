/** Number of objects of each kind that the figures refer to. */
export const population = { tenants: 300, registers: 50, validatorSets: 5 } as const;

/** A custom resource to create. */
export interface NewResource {
  readonly apiVersion: string;
  readonly kind: 'Tenant' | 'Register' | 'ValidatorSet';
  readonly metadata: { readonly name: string };
  readonly spec: Readonly<Record<string, unknown>>;
}

const apiVersion = 'chancery.dev/v1alpha1';
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, n) => n);

export function tenant(name: string): NewResource {
  return {
    apiVersion,
    kind: 'Tenant',
    metadata: { name },
    spec: { displayName: `Organisation ${name}`, subdomain: name },
  };
}

/** All of one burst. */
export function tenants(): readonly NewResource[] {
  return numbers(population.tenants).map((n) => tenant(`tenant-${n}`));
}

/** One set of four members and others of one: eight validators run on a machine of two cores. */
export function validatorSets(): readonly NewResource[] {
  return numbers(population.validatorSets).map((n) => ({
    apiVersion,
    kind: 'ValidatorSet',
    metadata: { name: `set-${n}` },
    spec: {
      replicas: n === 0 ? 4 : 1,
      storage: { size: '256Mi' },
      resources: { requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '512Mi' } },
    },
  }));
}

/** Spread evenly over the sets, each with a tenant of its own. */
export function registers(): readonly NewResource[] {
  return numbers(population.registers).map((n) => ({
    apiVersion,
    kind: 'Register',
    metadata: { name: `register-${n}` },
    spec: {
      title: `Register ${n}`,
      tenantRef: { name: `tenant-${n}` },
      validatorSetRef: { name: `set-${n % population.validatorSets}` },
    },
  }));
}
