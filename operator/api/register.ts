import { z } from 'zod';
import { immutable, integer, keepsPresence, listOf, mapOf, nameRef, text, withRules } from './fields.ts';
import { type CustomResource, parserOf, statusFields, tolerant } from './object.ts';
import { registerPolicy } from './register-policy.ts';

/** Largest number of proposals that the status lists. */
export const MAX_PENDING_PROPOSALS = 64;

const titleText = {
  min: 1,
  max: 128,
  pattern: /^[^\p{Cc}]*$/u,
  message: 'write a title of one line, without control characters',
} as const;
const storableText = {
  max: 2048,
  pattern: /^[\P{Cc}\t\n\r]*$/u,
  message: 'write text without control characters other than tabs and line feeds',
} as const;
const walletAddress = {
  min: 61,
  max: 61,
  pattern: /^w1[02-9ac-hj-np-z]{59}$/,
  message: 'write a wallet address: w1 and 59 lower-case characters',
} as const;
const registerIdText = {
  min: 32,
  max: 32,
  pattern: /^[0-9a-f]{32}$/,
  message: 'write the id of the existing register: 32 lower-case hexadecimal characters',
} as const;

const ownersChange = 'owners are fixed when the register is made; transfer the ownership through governance';

const owner = withRules(
  z.strictObject({
    walletAddress: text(walletAddress)
      .optional()
      .describe('Address of a wallet of the platform, or of a person who attests.'),
    operatorWallet: z.literal(true).optional().describe("The operator's own wallet."),
  }),
  {
    cel: 'has(self.walletAddress) != has(self.operatorWallet)',
    message: 'an owner is either a walletAddress or operatorWallet: true; write one of them',
    holds: (one) => (one.walletAddress === undefined) !== (one.operatorWallet === undefined),
  },
);

const owners = immutable(
  withRules(listOf(owner, 25), {
    cel: 'size(self) == 1',
    message: 'a register has exactly one owner; name the other people under admins',
    holds: (list) => list.length === 1,
  }),
  ownersChange,
).meta({ 'x-kubernetes-list-type': 'atomic' });

const adminsChange = 'admins are fixed when the register is made; change the roster through governance';

const admins = immutable(
  withRules(
    listOf(
      z.strictObject({
        walletAddress: text(walletAddress).describe('Address of the wallet.'),
        role: z
          .enum(['Admin', 'Auditor', 'Designer'])
          .default('Admin')
          .describe('Role of the wallet in the roster.'),
      }),
      24,
    ),
    {
      cel: 'self.all(one, self.exists_one(other, other.walletAddress == one.walletAddress))',
      message: 'a walletAddress occurs twice; write it once',
      holds: (list) => new Set(list.map((one) => one.walletAddress)).size === list.length,
    },
  ),
  adminsChange,
).meta({ 'x-kubernetes-list-type': 'atomic' });

const metadataChange =
  'entries of metadata are facts of the ledger: they are added, never changed or removed';

const metadata = withRules(
  mapOf(text({ ...storableText, max: 512 }), {
    entries: 32,
    keyMax: 64,
    keyPattern: /^[^\p{Cc}]*$/u,
    message: 'write keys of 1 to 64 characters, without control characters',
  }),
  { cel: 'oldSelf.all(k, k in self && self[k] == oldSelf[k])', message: metadataChange },
);

const idChange =
  'registerId is stated when the object is created and never changes; delete the object and make another one';
const tenantChange = 'tenantRef cannot be changed; make another Register';

const registerSpecShape = z.strictObject({
  title: text(titleText).describe('Name of the register, stored in the ledger.'),
  description: text(storableText)
    .optional()
    .describe('Purpose of the register in words, stored in the ledger.'),
  purpose: immutable(z.enum(['General', 'System']), 'purpose cannot be changed; make another Register')
    .default('General')
    .describe('System registers hold the records of the platform itself.'),
  tenantRef: immutable(nameRef('Tenant'), tenantChange)
    .optional()
    .describe('The tenant that owns the register; required unless purpose is System.'),
  validatorSetRef: nameRef('ValidatorSet').describe(
    'The validators that seal dockets. A change replaces them one by one.',
  ),
  owners: owners
    .default([{ operatorWallet: true }])
    .describe('Owner of the new register; the operator when absent.'),
  admins: admins.optional().describe('Further members of the first roster.'),
  devMode: withRules(z.boolean(), {
    cel: 'oldSelf || !self',
    message: 'devMode is only ever switched off; make another Register with devMode: true',
  })
    .default(false)
    .describe('Whether the register allows operations for development. It can only be switched off.'),
  metadata: metadata.optional().describe('Metadata stored in the ledger; entries can only be added.'),
  policy: registerPolicy.optional().describe('Policy of the register. Absent members keep their values.'),
  transitionMode: z
    .enum(['Immediate', 'GracePeriod'])
    .default('Immediate')
    .describe('When validators without approval are removed after registrationMode becomes Consent.'),
  registerId: immutable(text(registerIdText), idChange)
    .optional()
    .describe('Id of an existing register to adopt, or of the system register, which is created with it.'),
  validation: z
    .enum(['Running', 'Paused', 'Stopped'])
    .default('Running')
    .describe('Whether the validators accept transactions and seal dockets.'),
  deletionPolicy: z
    .enum(['Retain', 'Tombstone', 'Purge'])
    .default('Retain')
    .describe('What happens to the register when this object is deleted.'),
});

export const registerSpec = withRules(
  registerSpecShape,
  {
    cel: "self.purpose == 'System' || has(self.tenantRef)",
    message: 'tenantRef is required; name the Tenant that owns the register',
    holds: ({ purpose, tenantRef }) => purpose === 'System' || tenantRef !== undefined,
    path: 'tenantRef',
  },
  {
    cel: "self.purpose != 'System' || self.deletionPolicy == 'Retain'",
    message: 'a System register is never removed; write deletionPolicy: Retain',
    holds: ({ purpose, deletionPolicy }) => purpose !== 'System' || deletionPolicy === 'Retain',
    path: 'deletionPolicy',
  },
  keepsPresence('tenantRef', tenantChange),
  keepsPresence('registerId', idChange),
  keepsPresence('admins', adminsChange),
  { cel: '!has(oldSelf.metadata) || has(self.metadata)', message: metadataChange, path: 'metadata' },
).describe('Desired state.');

export type RegisterSpec = Readonly<z.output<typeof registerSpec>>;

const REGISTER_PHASES = [
  'Pending',
  'AwaitingAttestations',
  'GenesisSubmitted',
  'Online',
  'Checking',
  'Recovering',
  'Halted',
  'Deleting',
  'Failed',
] as const;

const number = () => integer(0, Number.MAX_SAFE_INTEGER).optional();
const count = () => integer(0, 1000).optional();
const word = (max = 256) => text({ max }).optional();
const time = () => text({ max: 64 }).meta({ format: 'date-time' }).optional();

const pendingAttestation = z.object({
  walletAddress: text({ max: 61 }).describe('Wallet that must sign.'),
  role: text({ max: 32 }).describe('Role that the signature attests.'),
  dataToSign: text({ max: 4096 }).describe('Bytes to sign, in base64.'),
  expiresAt: time().describe('Time of expiry.'),
});

const pendingProposal = z.object({
  proposalId: text({ max: 128 }).describe('Id of the proposal.'),
  operationType: word(64).describe('Operation that it proposes.'),
  votesReceived: count().describe('Votes so far.'),
  votesRequired: count().describe('Votes needed for acceptance.'),
  expiresAt: time().describe('Time of expiry.'),
});

export const registerStatus = z
  .object({
    ...statusFields,
    registerId: word(32).describe('Id of the register.'),
    phase: z.enum(REGISTER_PHASES).optional().describe('Phase of the register.'),
    genesisTransactionId: word(64).describe('Id of the first transaction.'),
    genesisHash: word(64).describe('Hash of docket 0.'),
    height: number().describe('Sealed dockets.'),
    headHash: word(64).describe('Hash of the last docket.'),
    lastSealedTime: time().describe('When the last docket was sealed.'),
    pendingAttestations: listOf(pendingAttestation, 25)
      .optional()
      .describe('Missing signatures of the first roster.'),
    policyVersion: number().describe('Version of the policy in force.'),
    pendingProposals: listOf(pendingProposal, MAX_PENDING_PROPOSALS)
      .optional()
      .describe('Proposals that wait for votes; at most the oldest 64.'),
    validators: z
      .object({
        size: count().describe('Validators of the register.'),
        quorum: count().describe('Validators that must agree.'),
        faultTolerance: count().describe('Validators that may fail.'),
        operational: count().describe('Validators whose heartbeat is recent.'),
        summary: word(32).describe('Operational validators and all, as operational/size.'),
      })
      .optional()
      .describe('Validators of the register.'),
    sync: z
      .object({
        status: word(32).describe('State of the register service.'),
        currentDocket: number().describe('Last docket that it has stored.'),
        targetDocket: number().describe('Last docket that it knows of.'),
        progressPercent: integer(0, 100).optional().describe('Progress in percent.'),
        isStale: z.boolean().optional().describe('Whether progress has stopped.'),
      })
      .optional()
      .describe('Synchronisation of the register service.'),
    mempool: z
      .object({ pending: number().describe('Transactions in the mempools.') })
      .optional()
      .describe('Transactions that wait to be sealed.'),
  })
  .describe('Observed state, written by the operator.');

export type RegisterStatus = Readonly<Partial<z.output<typeof registerStatus>>>;
export type Register = CustomResource<RegisterSpec, RegisterStatus>;

/** Throws AppError invalid INVALID_CUSTOM_RESOURCE; see parserOf. */
export const parseRegister: (value: unknown) => Register = parserOf(
  'Register',
  registerSpec,
  tolerant(registerStatus),
);
