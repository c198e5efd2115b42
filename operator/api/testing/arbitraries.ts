import fc from 'fast-check';
import type { ManagedKind } from '../names.ts';
import { ADDRESS, OTHER_ADDRESS } from './bad-objects.ts';

type Members = Readonly<Record<string, unknown>>;

/** An object whose optional members may be absent. */
function some(
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>>,
) {
  return fc.record({ ...required, ...optional }, { requiredKeys: Object.keys(required) });
}

const bool = fc.boolean();
const name = fc.stringMatching(/^[a-z]([-a-z0-9]{0,10}[a-z0-9])$/);
const line = (min: number, max: number) =>
  fc
    .string({ minLength: min, maxLength: Math.min(max, 40), unit: 'grapheme' })
    .filter((text) => !/\p{Cc}/u.test(text) && [...text].length >= min && [...text].length <= max);
const quantity = fc.oneof(
  fc.integer({ min: 0, max: 1_000_000 }),
  fc.stringMatching(/^[1-9][0-9]{0,3}([.][0-9]{1,2})?(m|k|M|G|Ki|Mi|Gi)?$/),
);
const labels = fc.dictionary(
  fc.oneof(
    name,
    name.map((key) => `example.org/${key}`),
  ),
  fc.oneof(name, fc.constant('')),
  { maxKeys: 3 },
);
const address = fc.constantFrom(ADDRESS, OTHER_ADDRESS);
const ref = fc.record({ name });

const policy = some(
  {},
  {
    governance: some(
      {},
      {
        quorumFormula: fc.constantFrom('StrictMajority', 'Supermajority', 'Unanimous'),
        proposalTtlDays: fc.integer({ min: 1, max: 90 }),
        ownerCanBypassQuorum: bool,
      },
    ),
    validators: some(
      {},
      {
        registrationMode: fc.constantFrom('Public', 'Consent'),
        minValidators: fc.integer({ min: 1, max: 10 }),
        maxValidators: fc.integer({ min: 10, max: 100 }),
      },
    ),
    consensus: some(
      {},
      {
        maxTransactionsPerDocket: fc.integer({ min: 1, max: 10_000 }),
        maxTransactionBytes: fc.integer({ min: 16_384, max: 100_000 }),
        maxDocketBytes: fc.integer({ min: 200_000, max: 8_388_608 }),
        requireBoundTxId: bool,
      },
    ),
  },
);

const register = some(
  { title: line(1, 128), tenantRef: ref, validatorSetRef: ref },
  {
    description: line(0, 2048),
    purpose: fc.constant('General'),
    owners: fc.oneof(
      fc.constant([{ operatorWallet: true }]),
      address.map((walletAddress) => [{ walletAddress }]),
    ),
    admins: fc.uniqueArray(
      some({ walletAddress: address }, { role: fc.constantFrom('Admin', 'Auditor', 'Designer') }),
      { maxLength: 2, selector: (one) => (one as { walletAddress: string }).walletAddress },
    ),
    devMode: bool,
    metadata: fc.dictionary(line(1, 64), line(0, 512), { maxKeys: 4 }),
    policy,
    transitionMode: fc.constantFrom('Immediate', 'GracePeriod'),
    validation: fc.constantFrom('Running', 'Paused', 'Stopped'),
    deletionPolicy: fc.constantFrom('Retain', 'Tombstone', 'Purge'),
    registerId: fc.stringMatching(/^[0-9a-f]{32}$/),
  },
);

const colour = fc.stringMatching(/^#[0-9A-Fa-f]{6}$/);

const tenant = some(
  { displayName: line(3, 100), subdomain: name.map((text) => `t-${text}`) },
  {
    organizationType: fc.constantFrom('Standard', 'Public'),
    suspended: bool,
    branding: some({ primaryColor: colour, secondaryColor: colour }, { companyTagline: line(0, 200) }),
    deletionPolicy: fc.constantFrom('Suspend', 'Retain', 'Delete'),
  },
);

const toleration = fc.oneof(
  some({ key: name }, { value: name, effect: fc.constantFrom('NoSchedule', 'NoExecute') }),
  fc.constant({ operator: 'Exists' }),
  fc.record({
    key: name,
    operator: fc.constant('Exists'),
    effect: fc.constant('NoExecute'),
    tolerationSeconds: fc.integer({ min: 0, max: 600 }),
  }),
);

const validatorSet = some(
  {},
  {
    replicas: fc.integer({ min: 1, max: 100 }),
    version: fc.stringMatching(/^[1-9][.][0-9][.][0-9](-rc[.][1-9])?$/),
    suspend: bool,
    registration: some({}, { mode: fc.constantFrom('Consent', 'Public'), autoApprove: bool }),
    mempool: some(
      {},
      {
        maxPerRegister: fc.integer({ min: 1, max: 1000 }),
        maxBytesTotal: fc.constantFrom('1Gi', 268_435_456),
      },
    ),
    storage: some({}, { size: fc.constantFrom('1Gi', '64Mi', 67_108_864, '1.5G'), storageClassName: name }),
    update: some(
      {},
      {
        strategy: fc.constantFrom('QuorumAware', 'OnDelete'),
        minReadySeconds: fc.integer({ min: 0, max: 60 }),
      },
    ),
    resources: some(
      {},
      {
        requests: fc.dictionary(fc.constantFrom('cpu', 'memory'), quantity),
        limits: fc.dictionary(fc.constantFrom('cpu', 'memory'), quantity),
      },
    ),
    tolerations: fc.array(toleration, { maxLength: 3 }),
    nodeSelector: labels,
    podLabels: labels,
    podAnnotations: fc.dictionary(name, line(0, 100), { maxKeys: 2 }),
  },
);

/** Specs that each kind accepts. */
export const goodSpecsOf: Readonly<Record<ManagedKind, fc.Arbitrary<Members>>> = {
  Register: register,
  Tenant: tenant,
  ValidatorSet: validatorSet,
};

/** Mistakes in a spec: wrong types, empty values, values at and beyond bounds, unknown members. */
const oddValue = fc.oneof(
  fc.constantFrom<unknown>(
    '',
    'x',
    'System',
    'true',
    '1Gi',
    '#12345',
    0,
    1,
    2,
    100,
    101,
    -1,
    1.5,
    true,
    false,
    [],
    {},
  ),
  fc.integer({ min: -5, max: 100_000 }),
  line(0, 40),
  fc.constantFrom('x'.repeat(64), 'x'.repeat(513), 'é'.repeat(128), '\u{1F600}'.repeat(128), 'a\u0001b'),
);

/** A spec with one member changed, removed or added at any depth; often invalid. */
export function mutated(spec: Members): fc.Arbitrary<Members> {
  return fc
    .tuple(
      fc.nat(),
      fc.oneof({ arbitrary: oddValue, weight: 4 }, { arbitrary: fc.constant(undefined), weight: 1 }),
      fc.boolean(),
    )
    .map(([pick, value, adds]) => change(spec, pick, adds ? { name: 'surplus', value } : { value }));
}

interface Change {
  /** Set when a member is added beside the picked one. */
  readonly name?: string;
  readonly value: unknown;
}

function change(spec: Members, pick: number, { name: added, value }: Change): Members {
  const copy = structuredClone(spec) as Record<string, unknown>;
  const members = membersOf(copy);
  const member = members[pick % Math.max(members.length, 1)];
  if (member === undefined) return { ...copy, [added ?? 'replicas']: value };
  const key = added ?? member.key;
  if (value === undefined) delete member.of[key];
  else member.of[key] = value;
  return copy;
}

function membersOf(node: Record<string, unknown>): { of: Record<string, unknown>; key: string }[] {
  return Object.entries(node).flatMap(([key, value]) => [
    { of: node, key },
    ...(typeof value === 'object' && value !== null && !Array.isArray(value)
      ? membersOf(value as Record<string, unknown>)
      : []),
  ]);
}
