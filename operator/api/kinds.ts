import type { z } from 'zod';
import { type ManagedKind, nameLimits } from './names.ts';
import { registerSpec, registerStatus } from './register.ts';
import { tenantSpec, tenantStatus } from './tenant.ts';
import { validatorSetSpec, validatorSetStatus } from './validator-set.ts';

interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  readonly description: string;
  /** 1: only with `-o wide`. */
  readonly priority?: 1;
}

interface RootRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

/** Content of the CRD of a kind. */
export interface KindDefinition {
  readonly kind: ManagedKind;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly description: string;
  readonly spec: z.ZodType;
  readonly status: z.ZodType;
  readonly columns: readonly PrinterColumn[];
  readonly selectableFields: readonly string[];
  readonly rules: readonly RootRule[];
  readonly scale?: Readonly<Record<'specReplicasPath' | 'statusReplicasPath' | 'labelSelectorPath', string>>;
}

function column(name: string, jsonPath: string, description: string): PrinterColumn {
  return { name, type: 'string', jsonPath, description };
}

function number(name: string, jsonPath: string, description: string): PrinterColumn {
  return { name, type: 'integer', jsonPath, description };
}

function wide(narrow: PrinterColumn): PrinterColumn {
  return { ...narrow, priority: 1 };
}

const ready = (name: string) =>
  column(name, '.status.conditions[?(@.type=="Ready")].status', 'Whether the object matches its spec.');
const age: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'Time since the creation of the object.',
};
const reason = wide(
  column('Reason', '.status.conditions[?(@.type=="Ready")].reason', 'Reason of the condition Ready.'),
);
const paused = wide(
  column('Paused', '.metadata.annotations.chancery\\.dev/paused', 'Whether reconciliation is paused.'),
);

/** Rules of a CRD see metadata.name and no other member of the metadata. */
function nameRule(kind: ManagedKind, max: number, first: string, begins: string): RootRule {
  return {
    rule: `size(self.metadata.name) <= ${max} && self.metadata.name.matches('^${first}([-a-z0-9]*[a-z0-9])?$')`,
    fieldPath: '.metadata.name',
    message: `the name of a ${kind} has at most ${max} lower-case letters, digits and hyphens and begins with ${begins}`,
  };
}

const validatorSet: KindDefinition = {
  kind: 'ValidatorSet',
  plural: 'validatorsets',
  singular: 'validatorset',
  shortNames: ['vset'],
  description:
    'Validators that seal dockets together. Each one is a pod with an identity, a key and a volume of its own.',
  spec: validatorSetSpec,
  status: validatorSetStatus,
  columns: [
    number('Desired', '.spec.replicas', 'Desired validators.'),
    number('Ready', '.status.readyReplicas', 'Pods that are ready.'),
    number('Updated', '.status.updatedReplicas', 'Pods of the desired version and configuration.'),
    number('Quorum', '.status.quorum', 'Validators that must agree.'),
    number('Tolerates', '.status.faultTolerance', 'Validators that may fail.'),
    column('Version', '.status.version', 'Version that the validators run, the lowest one during a rollout.'),
    ready('Ready-Status'),
    age,
    wide(number('Height', '.status.height', 'Sealed dockets of the longest register.')),
    reason,
    paused,
  ],
  selectableFields: [],
  rules: [nameRule('ValidatorSet', nameLimits.validatorSet, '[a-z]', 'a letter')],
  scale: {
    specReplicasPath: '.spec.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
};

const register: KindDefinition = {
  kind: 'Register',
  plural: 'registers',
  singular: 'register',
  shortNames: ['reg'],
  description:
    'A ledger. The object states the desired state; the roster of the register decides about changes.',
  spec: registerSpec,
  status: registerStatus,
  columns: [
    column('Phase', '.status.phase', 'Phase of the register.'),
    number('Height', '.status.height', 'Sealed dockets.'),
    column('Validators', '.status.validators.summary', 'Operational validators of all.'),
    number('Policy', '.status.policyVersion', 'Version of the policy in force.'),
    column('Sync', '.status.sync.status', 'State of the register service.'),
    ready('Ready'),
    age,
    wide(column('RegisterId', '.status.registerId', 'Id of the register.')),
    reason,
    paused,
  ],
  selectableFields: ['.spec.tenantRef.name', '.spec.validatorSetRef.name'],
  rules: [nameRule('Register', nameLimits.register, '[a-z0-9]', 'a letter or digit')],
};

const tenant: KindDefinition = {
  kind: 'Tenant',
  plural: 'tenants',
  singular: 'tenant',
  shortNames: ['ten'],
  description: 'An organisation of the installation.',
  spec: tenantSpec,
  status: tenantStatus,
  columns: [
    column('State', '.status.state', 'State of the organisation.'),
    column('Subdomain', '.spec.subdomain', 'Name of the organisation in addresses.'),
    number('Users', '.status.userCount', 'Members of the organisation.'),
    number('Registers', '.status.registerCount', 'Registers that the organisation sees.'),
    ready('Ready'),
    age,
    wide(column('OrganizationId', '.status.organizationId', 'Id of the organisation.')),
    reason,
    paused,
  ],
  selectableFields: [],
  rules: [nameRule('Tenant', nameLimits.tenant, '[a-z0-9]', 'a letter or digit')],
};

/** The three kinds, by name. */
export const KINDS: readonly KindDefinition[] = [register, tenant, validatorSet];
