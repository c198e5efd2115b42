import type { ManagedKind } from '../names.ts';

/** A spec that both the parser and the API server refuse. */
export interface BadObject {
  readonly kind: ManagedKind;
  readonly spec: Readonly<Record<string, unknown>>;
  /** Path of the violation, as kubectl prints it. */
  readonly field: string;
  /** Part of the API server's message. */
  readonly message: string;
}

/** An edit of a good object that the API server refuses. */
export interface BadEdit {
  readonly kind: ManagedKind;
  readonly before: Readonly<Record<string, unknown>>;
  /** Members to change; undefined removes one. */
  readonly edit: Readonly<Record<string, unknown>>;
  readonly field: string;
  readonly message: string;
}

export const ADDRESS = `w1${'q'.repeat(59)}`;
export const OTHER_ADDRESS = `w1${'p'.repeat(59)}`;
const ID = '0123456789abcdef0123456789abcdef';
const UUID = '0b0e6a1e-7b57-4c0f-9d0f-2d8f3f1c9a11';

/** The smallest valid spec of each kind. */
export const goodSpecs: Readonly<Record<ManagedKind, Readonly<Record<string, unknown>>>> = {
  Register: { title: 'Invoices', tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } },
  Tenant: { displayName: 'Acme', subdomain: 'acme' },
  ValidatorSet: {},
};

type Case = readonly [spec: Readonly<Record<string, unknown>>, field: string, message: string];

const cases = (kind: ManagedKind, list: readonly Case[]): readonly BadObject[] =>
  list.map(([spec, field, message]) => ({ kind, spec: { ...goodSpecs[kind], ...spec }, field, message }));

const registers = cases('Register', [
  [{ title: undefined }, 'spec.title', 'Required value'],
  [{ title: '' }, 'spec.title', 'at least 1 chars'],
  [{ title: 'x'.repeat(129) }, 'spec.title', 'Too long: may not be more than 128'],
  [{ title: 'two\nlines' }, 'spec.title', 'write a title of one line'],
  [{ title: 7 }, 'spec.title', 'must be of type string'],
  [{ description: 'x'.repeat(2049) }, 'spec.description', 'Too long'],
  [{ purpose: 'Other' }, 'spec.purpose', 'supported values: "General", "System"'],
  [{ tenantRef: undefined }, 'spec.tenantRef', 'tenantRef is required; name the Tenant'],
  [{ tenantRef: { name: 'Not A Name' } }, 'spec.tenantRef.name', 'write a name of lower-case letters'],
  [{ tenantRef: {} }, 'spec.tenantRef.name', 'Required value'],
  [{ validatorSetRef: undefined }, 'spec.validatorSetRef', 'Required value'],
  [{ owners: [] }, 'spec.owners', 'exactly one owner'],
  [
    { owners: [{ operatorWallet: true }, { walletAddress: ADDRESS }] },
    'spec.owners',
    'name the other people under admins',
  ],
  [{ owners: [{}] }, 'spec.owners[0]', 'either a walletAddress or operatorWallet'],
  [{ owners: [{ operatorWallet: true, walletAddress: ADDRESS }] }, 'spec.owners[0]', 'write one of them'],
  [{ owners: [{ operatorWallet: false }] }, 'spec.owners[0].operatorWallet', 'supported values: "true"'],
  [{ owners: [{ walletAddress: 'w1short' }] }, 'spec.owners[0].walletAddress', 'at least 61 chars'],
  [
    { owners: [{ walletAddress: ADDRESS.toUpperCase() }] },
    'spec.owners[0].walletAddress',
    'write a wallet address: w1',
  ],
  [
    { admins: [{ walletAddress: ADDRESS, role: 'Owner' }] },
    'spec.admins[0].role',
    'supported values: "Admin"',
  ],
  [
    { admins: [{ walletAddress: ADDRESS }, { walletAddress: ADDRESS, role: 'Auditor' }] },
    'spec.admins',
    'write it once',
  ],
  [
    { admins: Array.from({ length: 25 }, () => ({ walletAddress: ADDRESS })) },
    'spec.admins',
    'must have at most 24 items',
  ],
  [{ metadata: { '': 'x' } }, 'spec.metadata', 'write keys of 1 to 64 characters'],
  [{ metadata: { ['k'.repeat(65)]: 'x' } }, 'spec.metadata', 'write keys of 1 to 64 characters'],
  [{ metadata: { a: 'x'.repeat(513) } }, 'spec.metadata.a', 'Too long'],
  [
    { metadata: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, 'v'])) },
    'spec.metadata',
    'must have at most 32',
  ],
  [{ registerId: ID.toUpperCase() }, 'spec.registerId', '32 lower-case hexadecimal'],
  [{ validation: 'Running2' }, 'spec.validation', 'supported values: "Running", "Paused", "Stopped"'],
  [{ transitionMode: 'immediate' }, 'spec.transitionMode', 'supported values: "Immediate", "GracePeriod"'],
  [{ deletionPolicy: 'Delete' }, 'spec.deletionPolicy', 'supported values: "Retain", "Tombstone", "Purge"'],
  [{ purpose: 'System', deletionPolicy: 'Purge' }, 'spec.deletionPolicy', 'write deletionPolicy: Retain'],
  [
    { policy: { governance: { quorumFormula: 'strict-majority' } } },
    'spec.policy.governance.quorumFormula',
    'supported values: "StrictMajority"',
  ],
  [
    { policy: { validators: { minValidators: 5, maxValidators: 4 } } },
    'spec.policy.validators.minValidators',
    'raise maxValidators',
  ],
  [
    { policy: { consensus: { signatureThresholdMin: 5, signatureThresholdMax: 4 } } },
    'spec.policy.consensus.signatureThresholdMin',
    'raise signatureThresholdMax',
  ],
  [
    { policy: { consensus: { maxTransactionBytes: 65_536, maxDocketBytes: 65_536 } } },
    'spec.policy.consensus.maxTransactionBytes',
    'raise maxDocketBytes',
  ],
  [
    { policy: { consensus: { precisionMs: 49 } } },
    'spec.policy.consensus.precisionMs',
    'greater than or equal to 50',
  ],
  [
    { policy: { consensus: { docketTimeoutSeconds: 301 } } },
    'spec.policy.consensus.docketTimeoutSeconds',
    'less than or equal to 300',
  ],
  [
    { policy: { leaderElection: { mechanism: 'Raft' } } },
    'spec.policy.leaderElection.mechanism',
    'supported values: "Rotating"',
  ],
  [
    { policy: { leaderElection: { heartbeatIntervalMs: 2000, leaderTimeoutMs: 2000 } } },
    'spec.policy.leaderElection.leaderTimeoutMs',
    'raise leaderTimeoutMs',
  ],
  [{ replication: { mode: 'Owner' } }, 'spec.replication', 'unknown field "spec.replication"'],
]);

const tenants = cases('Tenant', [
  [{ displayName: undefined }, 'spec.displayName', 'Required value'],
  [{ displayName: 'ab' }, 'spec.displayName', 'at least 3 chars'],
  [{ displayName: 'a\tb\u0007' }, 'spec.displayName', 'write one line'],
  [{ subdomain: 'Acme' }, 'spec.subdomain', 'write 3 to 50 lower-case letters'],
  [{ subdomain: '-acme' }, 'spec.subdomain', 'begin and end with a letter or digit'],
  [{ subdomain: 'a'.repeat(51) }, 'spec.subdomain', 'Too long'],
  [{ subdomain: 'admin' }, 'spec.subdomain', 'choose another one'],
  [{ organizationType: 'Private' }, 'spec.organizationType', 'supported values: "Standard", "Public"'],
  [
    { branding: { primaryColor: 'red', secondaryColor: '#000000' } },
    'spec.branding.primaryColor',
    'at least 7 chars',
  ],
  [
    { branding: { primaryColor: '#00000g', secondaryColor: '#000000' } },
    'spec.branding.primaryColor',
    "write a colour such as '#1a2b3c'",
  ],
  [{ branding: { primaryColor: '#000000' } }, 'spec.branding.secondaryColor', 'Required value'],
  [
    {
      branding: { primaryColor: '#000000', secondaryColor: '#000000', logoUrl: 'http://a.example/logo.png' },
    },
    'spec.branding.logoUrl',
    'begins with https://',
  ],
  [{ organizationId: UUID.toUpperCase() }, 'spec.organizationId', 'a UUID in lower case'],
  [{ deletionPolicy: 'Purge' }, 'spec.deletionPolicy', 'supported values: "Suspend", "Retain", "Delete"'],
  [{ suspended: 'yes' }, 'spec.suspended', 'must be of type boolean'],
  [{ quota: { users: 5 } }, 'spec.quota', 'unknown field "spec.quota"'],
]);

const sets = cases('ValidatorSet', [
  [{ replicas: 0 }, 'spec.replicas', 'greater than or equal to 1'],
  [{ replicas: 101 }, 'spec.replicas', 'less than or equal to 100'],
  [{ replicas: '4' }, 'spec.replicas', 'must be of type integer'],
  [{ version: 'latest' }, 'spec.version', 'write a semantic version such as 1.4.0'],
  [{ image: 'has blanks' }, 'spec.image', 'write an image reference'],
  [{ registration: { mode: 'consent' } }, 'spec.registration.mode', 'supported values: "Consent", "Public"'],
  [{ mempool: { maxBytesPerRegister: '1Gi' } }, 'spec.mempool.maxBytesPerRegister', 'raise maxBytesTotal'],
  [{ mempool: { maxBytesTotal: '1GB' } }, 'spec.mempool.maxBytesTotal', 'write a quantity such as'],
  [{ mempool: { maxPerRegister: 0 } }, 'spec.mempool.maxPerRegister', 'greater than or equal to 1'],
  [{ storage: { size: '1Mi' } }, 'spec.storage.size', 'a volume of 64Mi or more'],
  [{ storage: { size: 'big' } }, 'spec.storage.size', 'write a quantity such as'],
  [{ storage: { size: '-1Gi' } }, 'spec.storage.size', 'write a quantity such as'],
  [
    { storage: { storageClassName: 'Fast!' } },
    'spec.storage.storageClassName',
    'write a name of lower-case letters',
  ],
  [{ service: { type: 'NodePort' } }, 'spec.service.type', 'supported values: "ClusterIP"'],
  [{ service: { port: 70_000 } }, 'spec.service.port', 'less than or equal to 65535'],
  [
    { update: { strategy: 'RollingUpdate' } },
    'spec.update.strategy',
    'supported values: "QuorumAware", "OnDelete"',
  ],
  [{ update: { minReadySeconds: -1 } }, 'spec.update.minReadySeconds', 'greater than or equal to 0'],
  [{ resources: { requests: { cpu: 'lots' } } }, 'spec.resources.requests', 'write a quantity such as'],
  [{ resources: { requests: { 'not a name': 1 } } }, 'spec.resources.requests', 'write a resource name'],
  [{ tolerations: [{ value: 'x' }] }, 'spec.tolerations[0]', 'needs operator Exists'],
  [{ tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] }, 'spec.tolerations[0]', 'remove value'],
  [{ tolerations: [{ key: 'a', tolerationSeconds: 5 }] }, 'spec.tolerations[0]', 'needs effect NoExecute'],
  [{ nodeSelector: { zone: 'a/b' } }, 'spec.nodeSelector', 'write a label value'],
  [{ podLabels: { 'chancery.dev/tenant': 'x' } }, 'spec.podLabels', 'use a prefix of your own'],
  [
    { podAnnotations: { 'container.apparmor.security.beta.kubernetes.io/x': 'unconfined' } },
    'spec.podAnnotations',
    'use a prefix of your own',
  ],
  [
    { topologySpreadConstraints: [{ topologyKey: 'zone', maxSkew: 0, whenUnsatisfiable: 'DoNotSchedule' }] },
    'spec.topologySpreadConstraints[0].maxSkew',
    'greater than or equal to 1',
  ],
  [
    {
      affinity: {
        nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } },
      },
    },
    'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms',
    'at least 1 items',
  ],
  [{ podTemplate: {} }, 'spec.podTemplate', 'unknown field "spec.podTemplate"'],
]);

/** Refused specs, at least one for each rule over one object. */
export const badObjects: readonly BadObject[] = [...registers, ...tenants, ...sets];

const register = goodSpecs.Register;

/** Refused edits, one for each rule over the old and the new object. */
export const badEdits: readonly BadEdit[] = [
  {
    kind: 'Register',
    before: register,
    edit: { purpose: 'System', tenantRef: undefined },
    field: 'spec.purpose',
    message: 'purpose cannot be changed',
  },
  {
    kind: 'Register',
    before: register,
    edit: { tenantRef: { name: 'other' } },
    field: 'spec.tenantRef',
    message: 'tenantRef cannot be changed',
  },
  {
    kind: 'Register',
    before: register,
    edit: { owners: [{ walletAddress: ADDRESS }] },
    field: 'spec.owners',
    message: 'transfer the ownership through governance',
  },
  {
    kind: 'Register',
    before: register,
    edit: { admins: [{ walletAddress: ADDRESS }] },
    field: 'spec.admins',
    message: 'change the roster through governance',
  },
  {
    kind: 'Register',
    before: { ...register, admins: [{ walletAddress: ADDRESS }] },
    edit: { admins: [{ walletAddress: OTHER_ADDRESS }] },
    field: 'spec.admins',
    message: 'change the roster through governance',
  },
  {
    kind: 'Register',
    before: register,
    edit: { devMode: true },
    field: 'spec.devMode',
    message: 'devMode is only ever switched off',
  },
  {
    kind: 'Register',
    before: { ...register, metadata: { a: '1' } },
    edit: { metadata: { a: '2' } },
    field: 'spec.metadata',
    message: 'never changed or removed',
  },
  {
    kind: 'Register',
    before: { ...register, metadata: { a: '1' } },
    edit: { metadata: undefined },
    field: 'spec.metadata',
    message: 'never changed or removed',
  },
  {
    kind: 'Register',
    before: register,
    edit: { registerId: ID },
    field: 'spec.registerId',
    message: 'stated when the object is created',
  },
  {
    kind: 'Register',
    before: { ...register, registerId: ID },
    edit: { registerId: undefined },
    field: 'spec.registerId',
    message: 'stated when the object is created',
  },
  {
    kind: 'Tenant',
    before: goodSpecs.Tenant,
    edit: { subdomain: 'acme2' },
    field: 'spec.subdomain',
    message: 'subdomain cannot be changed',
  },
  {
    kind: 'Tenant',
    before: goodSpecs.Tenant,
    edit: { organizationType: 'Public' },
    field: 'spec.organizationType',
    message: 'organizationType cannot be changed',
  },
  {
    kind: 'Tenant',
    before: goodSpecs.Tenant,
    edit: { organizationId: UUID },
    field: 'spec.organizationId',
    message: 'stated when the object is created',
  },
  {
    kind: 'ValidatorSet',
    before: {},
    edit: { storage: { size: '512Mi' } },
    field: 'spec.storage.size',
    message: 'size only grows',
  },
  {
    kind: 'ValidatorSet',
    before: { storage: { storageClassName: 'a' } },
    edit: { storage: { storageClassName: 'b' } },
    field: 'spec.storage.storageClassName',
    message: 'storageClassName cannot be changed',
  },
  {
    kind: 'ValidatorSet',
    before: {},
    edit: { storage: { storageClassName: 'b' } },
    field: 'spec.storage.storageClassName',
    message: 'storageClassName cannot be changed',
  },
];

/** Accepted edits that resemble refused ones. */
export const goodEdits: readonly Pick<BadEdit, 'kind' | 'before' | 'edit'>[] = [
  { kind: 'Register', before: { ...register, devMode: true }, edit: { devMode: false } },
  { kind: 'Register', before: { ...register, metadata: { a: '1' } }, edit: { metadata: { a: '1', b: '2' } } },
  { kind: 'Register', before: register, edit: { metadata: { sandbox: 'true' } } },
  {
    kind: 'Register',
    before: register,
    edit: { validatorSetRef: { name: 'other' }, title: 'Renamed', validation: 'Paused' },
  },
  { kind: 'Tenant', before: goodSpecs.Tenant, edit: { displayName: 'Acme Ltd', suspended: true } },
  { kind: 'ValidatorSet', before: {}, edit: { storage: { size: '2Gi' }, replicas: 1, suspend: true } },
  { kind: 'ValidatorSet', before: { storage: { size: '1024Mi' } }, edit: { storage: { size: '1Gi' } } },
  {
    kind: 'ValidatorSet',
    before: { storage: { size: 1_073_741_824 } },
    edit: { storage: { size: '1.5Gi' } },
  },
];
