import type { Definition } from '#core/blueprint/members.ts';

const text = { type: 'string' } as const;
const everything = ['/*'];

/** The creation of a register, as a readable blueprint. */
const registerCreation: Definition = {
  id: 'register-creation-v1',
  title: 'Creation of a register',
  description:
    'An owner begins a register, its members attest their roles, and the installation submits the genesis.',
  participants: [
    { id: 'owner', name: 'Owner' },
    { id: 'installation', name: 'Installation' },
  ],
  actions: [
    {
      id: 0,
      title: 'Attest',
      description: 'The owner says what the register is called and signs its role.',
      sender: 'owner',
      isStartingAction: true,
      dataSchemas: [
        {
          type: 'object',
          required: ['registerId', 'registerName', 'role', 'subject', 'grantedAt'],
          properties: {
            registerId: { type: 'string', pattern: '^[0-9a-f]{32}$' },
            registerName: { type: 'string', minLength: 1, maxLength: 128 },
            role: { enum: ['Owner', 'Admin', 'Auditor', 'Designer'] },
            subject: text,
            grantedAt: text,
          },
        },
      ],
      disclosures: [{ participantAddress: 'installation', dataPointers: everything }],
      routes: [{ id: 'begin', nextActionIds: [1], isDefault: true }],
    },
    {
      id: 1,
      title: 'Begin',
      description:
        'The installation signs the genesis transaction with the control record; validators seal docket 0.',
      sender: 'installation',
      requiredPriorActions: [0],
      dataSchemas: [
        {
          type: 'object',
          required: ['registerId', 'name', 'purpose', 'attestations', 'registerPolicy', 'validators'],
          properties: {
            registerId: { type: 'string', pattern: '^[0-9a-f]{32}$' },
            name: { type: 'string', minLength: 1, maxLength: 128 },
            purpose: { enum: ['General', 'System'] },
            attestations: { type: 'array', minItems: 1, maxItems: 25 },
            registerPolicy: { type: 'object' },
            validators: { type: 'object' },
          },
        },
      ],
      disclosures: [{ participantAddress: 'owner', dataPointers: everything }],
      routes: [{ id: 'sealed', nextActionIds: [], isDefault: true }],
    },
  ],
};

/** The governance of a register, as a readable blueprint. */
const registerGovernance: Definition = {
  id: 'register-governance-v1',
  title: 'Governance of a register',
  description:
    'A member of the roster proposes a change, others vote, and the installation enacts what is approved.',
  participants: [
    { id: 'proposer', name: 'Proposer' },
    { id: 'voter', name: 'Voter' },
    { id: 'installation', name: 'Installation' },
  ],
  actions: [
    {
      id: 0,
      title: 'Propose',
      description: 'An Owner or Admin proposes an operation on roster, validators or policies.',
      sender: 'proposer',
      isStartingAction: true,
      dataSchemas: [
        {
          type: 'object',
          required: ['version', 'operation', 'rosterHashBefore', 'rosterHashAfter'],
          properties: {
            version: { const: 2 },
            operation: {
              type: 'object',
              required: ['operationType', 'proposerDid', 'proposedAt'],
              properties: { operationType: text, proposerDid: text, proposedAt: text },
            },
            rosterHashBefore: { type: 'string', pattern: '^[0-9a-f]{64}$' },
            rosterHashAfter: { type: 'string', pattern: '^[0-9a-f]{64}$' },
          },
        },
      ],
      disclosures: [
        { participantAddress: 'voter', dataPointers: everything },
        { participantAddress: 'installation', dataPointers: everything },
      ],
      routes: [{ id: 'vote', nextActionIds: [1], isDefault: true }],
    },
    {
      id: 1,
      title: 'Vote',
      description: 'An Owner or Admin approves or rejects the proposal.',
      sender: 'voter',
      requiredPriorActions: [0],
      dataSchemas: [
        {
          type: 'object',
          required: ['isApproval'],
          properties: { proposalId: text, isApproval: { type: 'boolean' } },
        },
      ],
      disclosures: [{ participantAddress: 'installation', dataPointers: everything }],
      routes: [
        { id: 'approved', condition: { '==': [{ var: 'isApproval' }, true] }, nextActionIds: [2] },
        { id: 'rejected', nextActionIds: [], isDefault: true },
      ],
    },
    {
      id: 2,
      title: 'Enact',
      description: 'With enough approvals the change takes effect from the next docket on.',
      sender: 'installation',
      requiredPriorActions: [0, 1],
      dataSchemas: [
        { type: 'object', required: ['enactsProposalId'], properties: { enactsProposalId: text } },
      ],
      disclosures: [{ participantAddress: 'proposer', dataPointers: everything }],
      routes: [{ id: 'enacted', nextActionIds: [], isDefault: true }],
    },
  ],
};

/** The initial blueprints of every system register. */
export const seedDefinitions: readonly Definition[] = [registerCreation, registerGovernance];
