import { z } from 'zod';
import {
  immutable,
  integer,
  keepsPresence,
  labelName,
  listOf,
  quantity,
  quantityInput,
  text,
  withRules,
} from './fields.ts';
import { MAX_REPLICAS } from './names.ts';
import { type CustomResource, parserOf, statusFields, tolerant } from './object.ts';
import { podFields } from './pods.ts';
import { quantityBytes } from './quantity.ts';

const SIZE_LEAST = '64Mi';

/** Largest number of registers listed per member; the object must stay below the size limit of etcd. */
export const MAX_MEMBER_REGISTERS = 100;

const version = {
  min: 5,
  max: 64,
  pattern: /^(0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})[.](0|[1-9][0-9]{0,5})(-[0-9A-Za-z.-]{1,40})?$/,
  message: 'write a semantic version such as 1.4.0',
} as const;
const image = {
  min: 1,
  max: 512,
  pattern: /^[a-zA-Z0-9]([a-zA-Z0-9._:/-]*[a-zA-Z0-9])?(@sha256:[0-9a-f]{64})?$/,
  message: 'write an image reference such as registry.example.org/chancery/validator:1.4.0',
} as const;

const registration = z.strictObject({
  mode: z
    .enum(['Consent', 'Public'])
    .default('Consent')
    .describe('Whether members need approval before they validate.'),
  autoApprove: z.boolean().default(true).describe('Whether the operator approves the members of this set.'),
});

const mempool = withRules(
  z.strictObject({
    maxPerRegister: integer(1, 1_000_000)
      .default(10_000)
      .describe('Largest number of waiting transactions per register and member.'),
    maxBytesPerRegister: quantity()
      .prefault('64Mi')
      .describe('Largest size of waiting transactions per register and member, in bytes.'),
    maxBytesTotal: quantity()
      .prefault('256Mi')
      .describe('Largest size of all waiting transactions per member, in bytes.'),
  }),
  {
    cel: [
      '!has(self.maxBytesPerRegister) || !has(self.maxBytesTotal)',
      '!isQuantity(string(self.maxBytesPerRegister)) || !isQuantity(string(self.maxBytesTotal))',
      'quantity(string(self.maxBytesPerRegister)).compareTo(quantity(string(self.maxBytesTotal))) <= 0',
    ].join(' || '),
    message: 'maxBytesPerRegister is larger than maxBytesTotal; raise maxBytesTotal',
    holds: ({ maxBytesPerRegister, maxBytesTotal }) =>
      quantityBytes(maxBytesPerRegister) <= quantityBytes(maxBytesTotal),
    path: 'maxBytesPerRegister',
  },
);

const size = withRules(
  quantityInput(),
  {
    cel: `!isQuantity(string(self)) || quantity(string(self)).compareTo(quantity('${SIZE_LEAST}')) >= 0`,
    message: `the log of a validator needs a volume of ${SIZE_LEAST} or more`,
    holds: (value) => quantityBytes(String(value)) >= quantityBytes(SIZE_LEAST),
  },
  {
    cel: [
      '!isQuantity(string(self)) || !isQuantity(string(oldSelf))',
      'quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0',
    ].join(' || '),
    message:
      'size only grows; for smaller volumes make another ValidatorSet and change validatorSetRef of the registers',
  },
);

const classChange = 'storageClassName cannot be changed; for other volumes make another ValidatorSet';

const storage = withRules(
  z.strictObject({
    size: size
      .transform(String)
      .prefault('1Gi')
      .describe('Size of the volume of each member; it can only grow.'),
    storageClassName: immutable(text({ ...labelName, max: 63 }), classChange)
      .optional()
      .describe("StorageClass of the volumes; the cluster's default when absent."),
  }),
  keepsPresence('storageClassName', classChange),
);

const service = z.strictObject({
  port: integer(1, 65_535).default(5000).describe('Port of gRPC over mutual TLS.'),
  type: z.enum(['ClusterIP']).default('ClusterIP').describe('Service of the members.'),
});

const update = z.strictObject({
  strategy: z
    .enum(['QuorumAware', 'OnDelete'])
    .default('QuorumAware')
    .describe(
      'QuorumAware replaces one member at a time while every register keeps its quorum; OnDelete replaces pods that a person deletes.',
    ),
  minReadySeconds: integer(0, 3600)
    .default(10)
    .describe('Seconds for which a member must be ready before the next one is replaced.'),
  maxBehindDockets: integer(0, 10_000)
    .default(1)
    .describe('Largest number of dockets that a caught-up member may be behind.'),
  paused: z.boolean().default(false).describe('Whether the rollout is paused.'),
});

export const validatorSetSpec = z
  .strictObject({
    replicas: integer(1, MAX_REPLICAS)
      .default(4)
      .describe('Number of validators. Any change is accepted; members are added and removed one at a time.'),
    version: text(version).optional().describe("Version of the validators; the installation's when absent."),
    image: text(image).optional().describe("Image of the validators; the installation's when absent."),
    suspend: z
      .boolean()
      .default(false)
      .describe('Whether all members are stopped. Volumes and keys are kept.'),
    registration: registration.prefault({}).describe('How members join the registers.'),
    mempool: mempool.prefault({}).describe('Limits of the mempool.'),
    storage: storage.prefault({}).describe('The volume of each member.'),
    service: service.prefault({}).describe('Service of the members.'),
    update: update.prefault({}).describe('Rollout of changes.'),
    ...podFields,
  })
  .describe('Desired state.');

type ValidatorSetSpec = Readonly<z.output<typeof validatorSetSpec>>;

export const MEMBER_PHASES = [
  'Provisioning',
  'IdentityReady',
  'KeyReady',
  'Registered',
  'PendingApproval',
  'Syncing',
  'Active',
  'Draining',
  'Suspended',
  'Removed',
  'Equivocated',
] as const;

const count = (max = MAX_REPLICAS) => integer(0, max).optional();
const word = (max = 256) => text({ max }).optional();
const height = () => integer(0, Number.MAX_SAFE_INTEGER).optional();

const memberRegister = z.object({
  registerId: text({ max: 32 }).describe('Id of the register.'),
  height: height().describe('Sealed dockets that the member has stored.'),
  round: integer(0, 2_147_483_647).optional().describe('Round of consensus.'),
  role: word(32).describe('Role of the member in the register.'),
  behind: height().describe('Dockets that the member is behind.'),
});

const member = z.object({
  name: text({ max: 63 }).describe('Name of the pod.'),
  ordinal: count().describe('Ordinal of the pod.'),
  validatorId: word(128).describe('Id in registers and rosters.'),
  did: word(255).describe('Decentralised identifier of the key.'),
  address: word(61).describe('Address of the key.'),
  publicKey: word(1024).describe('Ed25519 key in base64.'),
  spiffeId: word(2048).describe('SPIFFE id of the pod.'),
  phase: z.enum(MEMBER_PHASES).optional().describe('Phase of the member.'),
  ready: z.boolean().optional().describe('Whether the pod is ready.'),
  version: word(64).describe('Version that the member runs.'),
  lastHeartbeat: word(64).meta({ format: 'date-time' }).describe('Time of the last heartbeat.'),
  registers: listOf(memberRegister, MAX_MEMBER_REGISTERS)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['registerId'] })
    .optional()
    .describe('Registers that the member validates; of more than 100, those that are most behind.'),
});

export const validatorSetStatus = z
  .object({
    ...statusFields,
    replicas: count().describe('Existing pods.'),
    readyReplicas: count().describe('Pods that are ready.'),
    updatedReplicas: count().describe('Pods of the desired version and configuration.'),
    selector: word(512).describe('Label selector of the pods, for autoscalers.'),
    size: count().describe('Validators that the quorum is computed from.'),
    quorum: count().describe('Validators that must agree, the largest number over all registers.'),
    faultTolerance: count().describe('Validators that may fail.'),
    nodeFaultTolerance: count(10_000).describe('Nodes that may fail with the current placement of the pods.'),
    height: height().describe('Sealed dockets of the longest register.'),
    version: word(64).describe('Version that all members run, the lowest one during a rollout.'),
    protocolVersion: integer(0, 2_147_483_647).optional().describe('Lowest protocol version of the members.'),
    members: listOf(member, MAX_REPLICAS)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
      .optional()
      .describe('The validators.'),
  })
  .describe('Observed state, written by the operator.');

type ValidatorSetStatus = Readonly<Partial<z.output<typeof validatorSetStatus>>>;
export type ValidatorSet = CustomResource<ValidatorSetSpec, ValidatorSetStatus>;

/** Throws AppError invalid INVALID_CUSTOM_RESOURCE; see parserOf. */
export const parseValidatorSet: (value: unknown) => ValidatorSet = parserOf(
  'ValidatorSet',
  validatorSetSpec,
  tolerant(validatorSetStatus),
);
