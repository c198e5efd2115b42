import type { Register, RegisterSpec } from '../../api/register.ts';
import type { Tenant } from '../../api/tenant.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';

export type Json = Readonly<Record<string, unknown>>;

/** Phase of a register as the register service reports it. */
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
interface ProposalFacts {
  readonly proposalId: string;
  readonly operationType: string;
  readonly votesReceived: number;
  readonly votesRequired: number;
  /** Whether the operator's wallet opened it or voted for it. */
  readonly votedByOperator: boolean;
  readonly expiresAt?: string | undefined;
}

/** Part of a register that is changed by its own transactions; at most one of each is outstanding. */
export type Aggregate = 'metadata' | 'policy' | 'devMode' | 'validators' | 'members';

interface SyncFacts {
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
  /** Missing signatures of the first roster; `dataToSign` in hex. */
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
  /** The complete policy in force, in the ledger's notation; empty before the register is created. */
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
  /** Validation state at the validators; undefined while none answers. */
  readonly validation?: 'Running' | 'Paused' | 'Stopped' | 'Halted' | 'WaitingForValidators' | undefined;
  readonly haltedReason?: string | undefined;
  readonly sync?: SyncFacts | undefined;
  readonly pendingTransactions: number;
  readonly isReplicatedElsewhere: boolean;
  readonly deletion?: { readonly policy: 'Tombstone' | 'Purge' } | undefined;
}

/** Desired state that is sent to the register service; the uid of the resource identifies the register. */
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
  /** Id of an existing register to adopt. */
  readonly registerId?: string | undefined;
  /** Uid of a deleted resource whose register is adopted. */
  readonly replaces?: string | undefined;
}

/** One change of an existing register. */
export type RegisterChange =
  | {
      readonly change: 'metadata';
      readonly title?: string | undefined;
      readonly description?: string | undefined;
      readonly metadata?: Readonly<Record<string, string>> | undefined;
    }
  | {
      readonly change: 'policy';
      /** Members to change; others stay. */
      readonly policy: Json;
      readonly transitionMode?: 'immediate' | 'grace-period' | undefined;
    }
  | { readonly change: 'devModeOff' }
  | { readonly change: 'addValidator' | 'removeValidator'; readonly validatorId: string }
  | { readonly change: 'addMember'; readonly walletAddress: string; readonly role: string };

/** A change that the ledger refused and that is not requested again for a while. */
export interface RefusedChange {
  /** Identity of the change: see changeKey. */
  readonly key: string;
  readonly message: string;
}

/** Input of the plan of a register. */
export interface RegisterPlanInput {
  readonly register: Register;
  /** The Tenant of spec.tenantRef; undefined when it does not exist. */
  readonly tenant: Tenant | undefined;
  /** The ValidatorSet of spec.validatorSetRef; undefined when it does not exist. */
  readonly validatorSet: ValidatorSet | undefined;
  /** Names of all ValidatorSets of the namespace; the operator may remove their members from registers. */
  readonly setNames: readonly string[];
  /** Undefined when the register service does not know the uid. */
  readonly facts: RegisterFacts | undefined;
  readonly refused: ReadonlyMap<Aggregate, RefusedChange>;
  readonly nowMs: number;
}
