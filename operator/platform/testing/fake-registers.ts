import { randomUUID } from 'node:crypto';
import type { ErrorKind } from '#core/errors/errors.ts';
import { applyChange, mergePatch, validatorNumbers } from '../../plan/register/apply-change.ts';
import type {
  Aggregate,
  DesiredRegister,
  Json,
  RegisterChange,
  RegisterFacts,
  ValidatorFacts,
} from '../../plan/register/facts.ts';
import { ServiceRefusal } from '../refusals.ts';
import type { Registers } from '../registers.ts';
import type { Wallets } from '../wallets.ts';

const OPERATOR_ADDRESS = `w1${'z'.repeat(59)}`;

interface Ledger {
  uid: string | undefined;
  desired: DesiredRegister;
  facts: RegisterFacts;
  signed: boolean;
  waiting: { readonly txId: string; readonly change: RegisterChange }[];
}

export interface FakeRegisters extends Registers, Wallets {
  readonly all: () => readonly RegisterFacts[];
  /** Number of calls that changed something. */
  readonly writes: () => number;
  /** Whether a register that is not being deleted is bound to a resource. */
  readonly stateOf: (uid: string) => 'bound' | 'free';
  /** Seals a docket in every register that can seal, so that waiting changes take effect. */
  readonly seal: (canSeal?: (facts: RegisterFacts) => boolean) => void;
  /** The owner of a register signs. */
  readonly sign: (uid: string) => void;
  /** Changes a register outside the operator. */
  readonly edit: (registerId: string, change: Partial<RegisterFacts>) => void;
  /** Unresponsive validators; no register starts with them. */
  readonly absent: Set<string>;
  /** Code of the refusal of a change; undefined to accept it. */
  refuses: (change: RegisterChange) => string | undefined;
  /** Voting members of every roster; with more than one a change becomes a proposal. */
  voters: number;
}

const aggregates: Readonly<Record<RegisterChange['change'], Aggregate>> = {
  metadata: 'metadata',
  policy: 'policy',
  devModeOff: 'devMode',
  addValidator: 'validators',
  removeValidator: 'validators',
  addMember: 'members',
};
const operations: Readonly<Partial<Record<RegisterChange['change'], string>>> = {
  policy: 'policy-update',
  addValidator: 'add-validator',
  removeValidator: 'remove-validator',
  addMember: 'add-member',
};

function refuse(kind: ErrorKind, code: string, members: Json = {}): never {
  throw new ServiceRefusal(kind, code, `the register service refused (${code})`, { status: 0, members });
}

/** The register and wallet services in memory, by the rules that the operator relies on. */
export function fakeRegisters(): FakeRegisters {
  const ledgers = new Map<string, Ledger>();
  let writes = 0;
  let wallet = false;
  const byUid = (uid: string) => [...ledgers.values()].find((each) => each.uid === uid);
  const get = (uid: string) => byUid(uid) ?? refuse('not_found', 'REGISTER_NOT_FOUND');
  const fake: FakeRegisters = {
    absent: new Set(),
    refuses: () => undefined,
    voters: 1,
    all: () => [...ledgers.values()].map(({ facts }) => facts),
    writes: () => writes,
    ensure: async () => {
      if (!wallet) writes += 1;
      wallet = true;
      return OPERATOR_ADDRESS;
    },
    find: async (uid) => byUid(uid)?.facts,
    upsert: async (uid, desired) => {
      const before = byUid(uid);
      if (before?.facts.deletion !== undefined) refuse('gone', 'REGISTER_DELETED');
      const ledger = before ?? bind(ledgers, uid, desired);
      if (before === undefined) writes += 1;
      if (ledger.facts.phase !== 'Pending' && ledger.facts.phase !== 'AwaitingAttestations')
        return ledger.facts;
      draft(ledger, desired, wallet);
      if (!ledger.signed) return ledger.facts;
      const absent = desired.validators.filter((each) => fake.absent.has(each));
      if (absent.length > 0) refuse('bad_gateway', 'VALIDATOR_SET_UNAVAILABLE', { absent });
      writes += 1;
      return begin(ledger, desired);
    },
    change: async (uid, change) => {
      const ledger = get(uid);
      const aggregate = aggregates[change.change];
      if (ledger.waiting.some((each) => aggregates[each.change.change] === aggregate)) {
        refuse('conflict', 'CHANGE_OUTSTANDING');
      }
      const code = fake.refuses(change);
      if (code !== undefined) refuse('unprocessable', code);
      writes += 1;
      return accept(ledger, change, fake.voters);
    },
    setValidation: async (uid, validation) => {
      const ledger = get(uid);
      writes += 1;
      ledger.facts = { ...ledger.facts, validation };
    },
    count: async (organizationId) => {
      const seen = [...ledgers.values()].filter(({ desired, facts }) => {
        const isThere = facts.genesisTransactionId !== undefined && facts.deletion === undefined;
        return isThere && desired.organizationId === organizationId;
      });
      return seen.length;
    },
    remove: async (uid, policy) => {
      const ledger = byUid(uid);
      if (ledger === undefined) return;
      writes += 1;
      if (policy === 'Retain') ledger.uid = undefined;
      else {
        const phase = policy === 'Purge' ? 'Deleting' : 'Deleted';
        ledger.facts = { ...ledger.facts, phase, deletion: { policy } };
      }
    },
    stateOf: (uid) => {
      const ledger = byUid(uid);
      return ledger === undefined || ledger.facts.deletion !== undefined ? 'free' : 'bound';
    },
    seal: (canSeal = () => true) => {
      for (const ledger of ledgers.values()) if (canSeal(ledger.facts)) sealDocket(ledger);
    },
    sign: (uid) => {
      get(uid).signed = true;
    },
    edit: (registerId, change) => {
      const ledger = ledgers.get(registerId);
      if (ledger !== undefined) ledger.facts = { ...ledger.facts, ...change };
    },
  };
  return fake;
}

function bind(ledgers: Map<string, Ledger>, uid: string, desired: DesiredRegister): Ledger {
  if (desired.registerId === undefined) {
    const registerId = randomUUID().replaceAll('-', '');
    const made: Ledger = { uid, desired, facts: emptyFacts(registerId), signed: false, waiting: [] };
    ledgers.set(registerId, made);
    return made;
  }
  const found = ledgers.get(desired.registerId);
  if (found === undefined) return refuse('not_found', 'REGISTER_NOT_FOUND');
  if (found.uid !== undefined && found.uid !== desired.replaces) {
    refuse('conflict', 'REGISTER_BOUND', { uid: found.uid });
  }
  found.uid = uid;
  return found;
}

function emptyFacts(registerId: string): RegisterFacts {
  return {
    registerId,
    phase: 'Pending',
    title: '',
    devMode: false,
    metadata: {},
    height: 0,
    pendingAttestations: [],
    roster: [],
    policyVersion: 0,
    policy: {},
    proposals: [],
    outstanding: [],
    validators: { members: [], size: 0, quorum: 0, faultTolerance: 0, operational: 0 },
    pendingTransactions: 0,
    isReplicatedElsewhere: false,
  };
}

function draft(ledger: Ledger, desired: DesiredRegister, wallet: boolean): void {
  const [owner] = desired.owners;
  if (owner?.operatorWallet === true) {
    if (!wallet) refuse('unprocessable', 'OWNER_WALLET_REQUIRED');
    ledger.signed = true;
  }
  const walletAddress = owner?.walletAddress ?? OPERATOR_ADDRESS;
  const attestation = {
    walletAddress,
    role: 'Owner',
    dataToSign: 'ab'.repeat(32),
    expiresAt: '2026-02-01T00:00:00Z',
  };
  const { title, description, devMode, metadata = {} } = desired;
  ledger.desired = desired;
  ledger.facts = {
    ...ledger.facts,
    phase: 'AwaitingAttestations',
    title,
    description,
    devMode,
    metadata,
    pendingAttestations: ledger.signed ? [] : [attestation],
  };
}

function begin(ledger: Ledger, desired: DesiredRegister): RegisterFacts {
  const walletAddress = desired.owners[0]?.walletAddress ?? OPERATOR_ADDRESS;
  const members = desired.validators.map((validatorId) => active(validatorId));
  ledger.facts = {
    ...ledger.facts,
    phase: 'GenesisSubmitted',
    genesisTransactionId: 'ab'.repeat(32),
    roster: [{ walletAddress, role: 'Owner' }],
    operatorRole: walletAddress === OPERATOR_ADDRESS ? 'Owner' : undefined,
    policyVersion: 1,
    policy: mergePatch(defaultPolicy, ledgerWords(desired.policy ?? {})),
    validators: validatorNumbers(members),
    validation: 'Running',
    pendingAttestations: [],
  };
  return ledger.facts;
}

const defaultPolicy: Json = {
  governance: { quorumFormula: 'strict-majority', proposalTtlDays: 7 },
  validators: { registrationMode: 'consent', minValidators: 1, maxValidators: 100 },
  consensus: { signatureThresholdMin: 1, docketBuildIntervalMs: 1000, requireBoundTxId: false },
  leaderElection: { mechanism: 'rotating', heartbeatIntervalMs: 1000, leaderTimeoutMs: 3000 },
};

function active(validatorId: string): ValidatorFacts {
  return { validatorId, status: 'Active', operational: true };
}

/** Enum values in the ledger's notation: `strict-majority` for `StrictMajority`. */
function ledgerWords(policy: Json): Json {
  const written = (value: unknown): unknown => {
    if (typeof value === 'string') return value.replaceAll(/(?<=.)([A-Z])/g, '-$1').toLowerCase();
    return typeof value === 'object' && value !== null ? ledgerWords(value as Json) : value;
  };
  return Object.fromEntries(Object.entries(policy).map(([name, member]) => [name, written(member)]));
}

function inLedgerWords(change: RegisterChange): RegisterChange {
  return change.change === 'policy' ? { ...change, policy: ledgerWords(change.policy) } : change;
}

function accept(ledger: Ledger, change: RegisterChange, voters: number) {
  const operationType = operations[change.change];
  const txId = randomUUID();
  if (voters > 1 && operationType !== undefined) {
    const proposalId = txId;
    const proposal = {
      proposalId,
      operationType,
      votesReceived: 1,
      votesRequired: voters,
      votedByOperator: true,
    };
    ledger.facts = { ...ledger.facts, proposals: [...ledger.facts.proposals, proposal] };
    return { txId, proposalId };
  }
  ledger.waiting.push({ txId, change });
  showWaiting(ledger);
  return { txId };
}

function showWaiting(ledger: Ledger): void {
  const outstanding = ledger.waiting.map(({ txId, change }) => ({
    aggregate: aggregates[change.change],
    txId,
  }));
  ledger.facts = { ...ledger.facts, outstanding };
}

function sealDocket(ledger: Ledger): void {
  const { facts } = ledger;
  if (facts.phase === 'GenesisSubmitted') {
    const sync = {
      status: 'Synced',
      currentDocket: 0,
      targetDocket: 0,
      progressPercent: 100,
      isStale: false,
    };
    ledger.facts = { ...facts, phase: 'Online', height: 1, genesisHash: 'cd'.repeat(32), sync };
    return;
  }
  if (facts.phase !== 'Online' || ledger.waiting.length === 0) return;
  const after = ledger.waiting.reduce((seen, { change }) => applyChange(seen, inLedgerWords(change)), facts);
  ledger.waiting = [];
  ledger.facts = { ...after, height: facts.height + 1 };
  showWaiting(ledger);
}
