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

/** Registers that the status of one member lists; an object must stay below what etcd stores. */
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
    .describe('Whether members wait for approval before they validate.'),
  autoApprove: z
    .boolean()
    .default(true)
    .describe('Whether the operator approves the members that it started.'),
});

const mempool = withRules(
  z.strictObject({
    maxPerRegister: integer(1, 1_000_000)
      .default(10_000)
      .describe('Transactions that may wait in one register on one member.'),
    maxBytesPerRegister: quantity()
      .prefault('64Mi')
      .describe('Bytes that may wait in one register on one member.'),
    maxBytesTotal: quantity()
      .prefault('256Mi')
      .describe('Bytes that may wait in all registers on one member.'),
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
      .describe('Size of the volume of each member; it only grows.'),
    storageClassName: immutable(text({ ...labelName, max: 63 }), classChange)
      .optional()
      .describe("Class of the volumes; the cluster's default when absent."),
  }),
  keepsPresence('storageClassName', classChange),
);

const service = z.strictObject({
  port: integer(1, 65_535).default(5000).describe('Port of gRPC over mutual TLS.'),
  type: z.enum(['ClusterIP']).default('ClusterIP').describe('How the members are reached.'),
});

const update = z.strictObject({
  strategy: z
    .enum(['QuorumAware', 'OnDelete'])
    .default('QuorumAware')
    .describe('QuorumAware replaces one member at a time while a quorum stays; OnDelete waits for you.'),
  minReadySeconds: integer(0, 3600)
    .default(10)
    .describe('How long a member is ready before the next one goes.'),
  maxBehindDockets: integer(0, 10_000)
    .default(1)
    .describe('How many dockets a member may be behind and still count as caught up.'),
  paused: z.boolean().default(false).describe('Whether no further member is replaced.'),
});

export const validatorSetSpec = z
  .strictObject({
    replicas: integer(1, MAX_REPLICAS)
      .default(4)
      .describe('Number of validators. Any change is accepted and walked one member at a time.'),
    version: text(version).optional().describe("Version of the validators; the installation's when absent."),
    image: text(image).optional().describe("Image of the validators; the installation's when absent."),
    suspend: z.boolean().default(false).describe('Whether every member stops. Volumes and keys are kept.'),
    registration: registration.prefault({}).describe('How members join the registers.'),
    mempool: mempool.prefault({}).describe('How much may wait to be sealed.'),
    storage: storage.prefault({}).describe('The volume of each member.'),
    service: service.prefault({}).describe('How the members are reached.'),
    update: update.prefault({}).describe('How members are replaced.'),
    ...podFields,
  })
  .describe('What you want.');

export type ValidatorSetSpec = Readonly<z.output<typeof validatorSetSpec>>;

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
  height: height().describe('Sealed dockets that the member has.'),
  round: integer(0, 2_147_483_647).optional().describe('Round of the consensus.'),
  role: word(32).describe('What the member does in it.'),
  behind: height().describe('Dockets that it lacks.'),
});

const member = z.object({
  name: text({ max: 63 }).describe('Name of the pod.'),
  ordinal: count().describe('Number of the pod.'),
  validatorId: word(128).describe('Id in registers and rosters.'),
  did: word(255).describe('Decentralised identifier of the key.'),
  address: word(61).describe('Address of the key.'),
  publicKey: word(1024).describe('Ed25519 key in base64.'),
  spiffeId: word(2048).describe('Identity of the pod.'),
  phase: z.enum(MEMBER_PHASES).optional().describe('How far the member is.'),
  ready: z.boolean().optional().describe('Whether the pod is ready.'),
  version: word(64).describe('Version that it runs.'),
  lastHeartbeat: word(64).meta({ format: 'date-time' }).describe('When it was last heard of.'),
  registers: listOf(memberRegister, MAX_MEMBER_REGISTERS)
    .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['registerId'] })
    .optional()
    .describe('Registers that it validates; those that are behind most when there are more than 100.'),
});

export const validatorSetStatus = z
  .object({
    ...statusFields,
    replicas: count().describe('Pods there are.'),
    readyReplicas: count().describe('Pods that are ready.'),
    updatedReplicas: count().describe('Pods of the wanted version and configuration.'),
    selector: word(512).describe('Label selector of the pods, for autoscalers.'),
    size: count().describe('Validators that count in the quorum.'),
    quorum: count().describe('Validators that must agree, the largest number over all registers.'),
    faultTolerance: count().describe('Validators that may fail.'),
    nodeFaultTolerance: count(10_000).describe('Nodes that may fail with the pods placed as they are.'),
    height: height().describe('Sealed dockets of the longest register.'),
    version: word(64).describe('Version that all members run, the lowest one during a roll.'),
    protocolVersion: integer(0, 2_147_483_647).optional().describe('Lowest protocol version of the members.'),
    members: listOf(member, MAX_REPLICAS)
      .meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] })
      .optional()
      .describe('Each validator.'),
  })
  .describe('What there is; written by the operator.');

export type ValidatorSetStatus = Readonly<Partial<z.output<typeof validatorSetStatus>>>;
export type ValidatorSet = CustomResource<ValidatorSetSpec, ValidatorSetStatus>;

/** Throws AppError invalid INVALID_CUSTOM_RESOURCE; see parserOf. */
export const parseValidatorSet: (value: unknown) => ValidatorSet = parserOf(
  'ValidatorSet',
  validatorSetSpec,
  tolerant(validatorSetStatus),
);
