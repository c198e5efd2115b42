import type { Register, RegisterSpec } from '../../api/register.ts';
import type { Tenant } from '../../api/tenant.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';

export type Json = Readonly<Record<string, unknown>>;

/** How far a register is, as the register service says it. */
export const LEDGER_PHASES = [
  'Pending',
  'AwaitingAttestations',
  'GenesisSubmitted',
  'Online',
  'Checking',
  'Recovering',
  'Halted',
  'Deleting',
  'Deleted',
] as const;
export type LedgerPhase = (typeof LEDGER_PHASES)[number];

export interface ValidatorFacts {
  readonly validatorId: string;
  readonly status: 'Active' | 'Pending' | 'Suspended' | 'Removed';
  readonly operational: boolean;
}

/** A proposal that waits for votes or for its docket. */
export interface ProposalFacts {
  readonly proposalId: string;
  readonly operationType: string;
  readonly votesReceived: number;
  readonly votesRequired: number;
  /** Whether the operator's wallet opened it or voted for it. */
  readonly votedByOperator: boolean;
  readonly expiresAt?: string | undefined;
}

/** What of a register is changed by a transaction of its own; at most one of each waits at a time. */
export type Aggregate = 'metadata' | 'policy' | 'devMode' | 'validators' | 'members';

export interface SyncFacts {
  readonly status: string;
  readonly currentDocket: number;
  readonly targetDocket: number;
  readonly progressPercent: number;
  readonly isStale: boolean;
}

/** A register as the register service has it. */
export interface RegisterFacts {
  readonly registerId: string;
  readonly phase: LedgerPhase;
  readonly organizationId?: string | undefined;
  readonly title: string;
  readonly description?: string | undefined;
  readonly devMode: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly genesisTransactionId?: string | undefined;
  readonly genesisHash?: string | undefined;
  /** Sealed dockets. */
  readonly height: number;
  readonly headHash?: string | undefined;
  readonly lastSealedTime?: string | undefined;
  /** What is missing of the first roster; `dataToSign` in hex. */
  readonly pendingAttestations: readonly {
    readonly walletAddress: string;
    readonly role: string;
    readonly dataToSign: string;
    readonly expiresAt?: string | undefined;
  }[];
  readonly roster: readonly { readonly walletAddress: string; readonly role: string }[];
  /** Role of the operator's wallet; undefined when it is not on the roster. */
  readonly operatorRole?: string | undefined;
  readonly policyVersion: number;
  /** The whole policy in force, in the ledger's words; empty before the register is created. */
  readonly policy: Json;
  readonly proposals: readonly ProposalFacts[];
  /** Control transactions that are neither sealed nor refused. */
  readonly outstanding: readonly { readonly aggregate: Aggregate | undefined; readonly txId: string }[];
  readonly validators: {
    readonly members: readonly ValidatorFacts[];
    readonly size: number;
    readonly quorum: number;
    readonly faultTolerance: number;
    readonly operational: number;
  };
  /** What the validators do with the register; undefined while none answers. */
  readonly validation?: 'Running' | 'Paused' | 'Stopped' | 'Halted' | 'WaitingForValidators' | undefined;
  readonly haltedReason?: string | undefined;
  readonly sync?: SyncFacts | undefined;
  readonly pendingTransactions: number;
  readonly isReplicatedElsewhere: boolean;
  readonly deletion?: { readonly policy: 'Tombstone' | 'Purge' } | undefined;
}

/** What the register service is asked to make; the uid of the resource names the register. */
export interface DesiredRegister {
  readonly title: string;
  readonly description?: string | undefined;
  readonly purpose: RegisterSpec['purpose'];
  readonly organizationId?: string | undefined;
  readonly owners: RegisterSpec['owners'];
  readonly admins?: RegisterSpec['admins'];
  readonly devMode: boolean;
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  readonly policy?: Json | undefined;
  /** Ids of the first validators. */
  readonly validators: readonly string[];
  /** Id of an existing register that is adopted. */
  readonly registerId?: string | undefined;
  /** Uid of a resource that is gone and whose register is adopted. */
  readonly replaces?: string | undefined;
}

/** One change of a register that exists. */
export type RegisterChange =
  | {
      readonly change: 'metadata';
      readonly title?: string | undefined;
      readonly description?: string | undefined;
      readonly metadata?: Readonly<Record<string, string>> | undefined;
    }
  | {
      readonly change: 'policy';
      /** Members to change; the others stay. */
      readonly policy: Json;
      readonly transitionMode?: 'immediate' | 'grace-period' | undefined;
    }
  | { readonly change: 'devModeOff' }
  | { readonly change: 'addValidator' | 'removeValidator'; readonly validatorId: string }
  | { readonly change: 'addMember'; readonly walletAddress: string; readonly role: string };

/** A change that the ledger refused, and which is not asked for again for a while. */
export interface RefusedChange {
  /** Identity of the change: see wishKey. */
  readonly desired: string;
  readonly message: string;
}

/** Everything that is known when a register is planned. */
export interface RegisterPlanInput {
  readonly register: Register;
  /** The one that spec.tenantRef names; undefined when it does not exist. */
  readonly tenant: Tenant | undefined;
  /** The one that spec.validatorSetRef names; undefined when it does not exist. */
  readonly validatorSet: ValidatorSet | undefined;
  /** Names of all validator sets of the namespace: their members are the operator's to remove. */
  readonly setNames: readonly string[];
  /** Undefined when the register service knows nothing of the uid. */
  readonly facts: RegisterFacts | undefined;
  readonly refused: ReadonlyMap<Aggregate, RefusedChange>;
  readonly nowMs: number;
}
