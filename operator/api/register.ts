import { z } from 'zod';
import { immutable, integer, keepsPresence, listOf, mapOf, nameRef, text, withRules } from './fields.ts';
import { type CustomResource, parserOf, statusFields, tolerant } from './object.ts';
import { registerPolicy } from './register-policy.ts';

/** Proposals that the status lists. */
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
      .describe('A wallet of the platform, or of somebody who attests.'),
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
        role: z.enum(['Admin', 'Auditor', 'Designer']).default('Admin').describe('What the wallet may do.'),
      }),
      24,
    ),
    {
      cel: 'self.all(one, self.exists_one(other, other.walletAddress == one.walletAddress))',
      message: 'a walletAddress is there twice; write it once',
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
  title: text(titleText).describe('Name of the register, a fact of the ledger.'),
  description: text(storableText).optional().describe('What the register is for, a fact of the ledger.'),
  purpose: immutable(z.enum(['General', 'System']), 'purpose cannot be changed; make another Register')
    .default('General')
    .describe('System registers hold what the platform itself records.'),
  tenantRef: immutable(nameRef('Tenant'), tenantChange)
    .optional()
    .describe('The tenant that owns the register; required unless purpose is System.'),
  validatorSetRef: nameRef('ValidatorSet').describe(
    'Who seals. A change replaces the validators one by one.',
  ),
  owners: owners
    .default([{ operatorWallet: true }])
    .describe('Who owns the register when it is made; the operator when absent.'),
  admins: admins.optional().describe('Who else has a say in it when it is made.'),
  devMode: withRules(z.boolean(), {
    cel: 'oldSelf || !self',
    message: 'devMode is only ever switched off; make another Register with devMode: true',
  })
    .default(false)
    .describe('Whether the register allows what only developers need. It is only ever switched off.'),
  metadata: metadata.optional().describe('Facts of the ledger; entries are only added.'),
  policy: registerPolicy.optional().describe('Rules of the register. What is absent keeps its value.'),
  transitionMode: z
    .enum(['Immediate', 'GracePeriod'])
    .default('Immediate')
    .describe('When validators without approval leave after registrationMode becomes Consent.'),
  registerId: immutable(text(registerIdText), idChange)
    .optional()
    .describe(
      'Id of an existing register that is adopted instead of making a new one, or of the system register, which is made under it.',
    ),
  validation: z
    .enum(['Running', 'Paused', 'Stopped'])
    .default('Running')
    .describe('Whether the validators work on the register.'),
  deletionPolicy: z
    .enum(['Retain', 'Tombstone', 'Purge'])
    .default('Retain')
    .describe('What becomes of the register when this object is deleted.'),
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
).describe('What you want.');

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
  walletAddress: text({ max: 61 }).describe('Who must sign.'),
  role: text({ max: 32 }).describe('Role that the signature attests.'),
  dataToSign: text({ max: 4096 }).describe('What must be signed, in base64.'),
  expiresAt: time().describe('Until when.'),
});

const pendingProposal = z.object({
  proposalId: text({ max: 128 }).describe('Id of the proposal.'),
  operationType: word(64).describe('What it would change.'),
  votesReceived: count().describe('Votes so far.'),
  votesRequired: count().describe('Votes that decide.'),
  expiresAt: time().describe('Until when.'),
});

export const registerStatus = z
  .object({
    ...statusFields,
    registerId: word(32).describe('Id of the register.'),
    phase: z.enum(REGISTER_PHASES).optional().describe('How far the register is.'),
    genesisTransactionId: word(64).describe('Id of the first transaction.'),
    genesisHash: word(64).describe('Hash of docket 0.'),
    height: number().describe('Sealed dockets.'),
    headHash: word(64).describe('Hash of the last docket.'),
    lastSealedTime: time().describe('When the last docket was sealed.'),
    pendingAttestations: listOf(pendingAttestation, 25).optional().describe('Signatures that are missing.'),
    policyVersion: number().describe('Version of the policy that holds.'),
    pendingProposals: listOf(pendingProposal, MAX_PENDING_PROPOSALS)
      .optional()
      .describe('Proposals that wait for votes; the oldest 64 when there are more.'),
    validators: z
      .object({
        size: count().describe('Validators of the register.'),
        quorum: count().describe('Validators that must agree.'),
        faultTolerance: count().describe('Validators that may fail.'),
        operational: count().describe('Validators heard of lately.'),
        summary: word(32).describe('operational/size.'),
      })
      .optional()
      .describe('Who seals.'),
    sync: z
      .object({
        status: word(32).describe('State of the register service.'),
        currentDocket: number().describe('Docket it has.'),
        targetDocket: number().describe('Docket it knows of.'),
        progressPercent: integer(0, 100).optional().describe('Progress.'),
        isStale: z.boolean().optional().describe('Whether there is no progress.'),
      })
      .optional()
      .describe('How far the register service is behind.'),
    mempool: z
      .object({ pending: number().describe('Transactions that wait.') })
      .optional()
      .describe('What waits to be sealed.'),
  })
  .describe('What there is; written by the operator.');

export type RegisterStatus = Readonly<Partial<z.output<typeof registerStatus>>>;
export type Register = CustomResource<RegisterSpec, RegisterStatus>;

/** Throws AppError invalid INVALID_CUSTOM_RESOURCE; see parserOf. */
export const parseRegister: (value: unknown) => Register = parserOf(
  'Register',
  registerSpec,
  tolerant(registerStatus),
);
