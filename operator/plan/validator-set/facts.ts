import type { ValidatorSet } from '../../api/validator-set.ts';

/** A register as one member reports it. */
export interface RegisterReport {
  readonly registerId: string;
  readonly status: string;
  readonly membership: string;
  readonly isMember: boolean;
  /** Height of the docket that is being decided, which is the number of sealed dockets. */
  readonly height: number;
  readonly round: number;
  readonly role: string;
  readonly isProposer: boolean;
  readonly quorum: number;
  /** Validator ids of the members. */
  readonly members: readonly string[];
  /** Number of dockets that other validators have announced beyond its own. */
  readonly behind: number;
  readonly roots: readonly { readonly height: number; readonly root: string }[];
  readonly evidence: readonly { readonly kind: string; readonly validatorIds: readonly string[] }[];
}

/** The report of a member about itself. */
export interface MemberReport {
  readonly validatorId: string;
  readonly did?: string | undefined;
  readonly walletAddress?: string | undefined;
  readonly publicKey?: string | undefined;
  readonly version: string;
  readonly protocolVersion: number;
  readonly drain: {
    readonly state: 'None' | 'Draining' | 'Drained';
    readonly since?: string | null | undefined;
  };
  readonly conditions: readonly {
    readonly type: string;
    readonly reason: string;
    readonly message: string;
  }[];
  readonly heard: readonly { readonly validatorId: string; readonly heardAt: string }[];
  readonly registers: readonly RegisterReport[];
}

export interface PodFacts {
  readonly uid: string;
  readonly isReady: boolean;
  /** Time of the last change of readiness; milliseconds of the epoch. */
  readonly readySinceMs: number;
  readonly isTerminating: boolean;
  /** The kubelet reports that the container does not work. A silent node reports nothing. */
  readonly isBroken: boolean;
  /** Revision of the StatefulSet that the pod was created from. */
  readonly revision: string;
  readonly node?: string | undefined;
  readonly address?: string | undefined;
  /** Reason why the container does not run: CrashLoopBackOff, ImagePullBackOff, Unschedulable ... */
  readonly trouble?: string | undefined;
  /** The force-roll annotation requests the replacement of this pod. */
  readonly isForced: boolean;
}

export interface ClaimFacts {
  readonly name: string;
  readonly uid: string;
  /** Quantities. */
  readonly requested: string;
  readonly capacity?: string | undefined;
  /** Conditions that are true, such as FileSystemResizePending. */
  readonly conditions: readonly string[];
}

/** A claim without a member, or one that is annotated as left. */
export interface RetainedClaim {
  readonly ordinal: number;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Time of the left-at annotation in milliseconds of the epoch; undefined without one. */
  readonly leftAtMs?: number | undefined;
}

export interface MemberFacts {
  readonly ordinal: number;
  readonly name: string;
  readonly pod?: PodFacts | undefined;
  readonly claim?: ClaimFacts | undefined;
  /** Undefined when it did not answer within 5 s; the member is then unknown and blocks unsafe steps. */
  readonly report?: MemberReport | undefined;
  /** When it last answered; milliseconds of the epoch. */
  readonly answeredAtMs?: number | undefined;
  /** It became ready and was not queried since, so a missing report does not mean silence. */
  readonly isUnqueried?: boolean | undefined;
  /** Since when it has reported its current height, by register id; milliseconds of the epoch. */
  readonly heightSinceMs?: ReadonlyMap<string, number> | undefined;
}

export interface StatefulSetFacts {
  readonly uid: string;
  readonly replicas: number;
  /** Revision of the current template; undefined until the StatefulSet controller has observed the last change. */
  readonly updateRevision?: string | undefined;
  /** Size in the claim template, a quantity. */
  readonly claimSize?: string | undefined;
}

/** A Register that refers to the set. */
export interface BoundRegister {
  readonly name: string;
  readonly registerId?: string | undefined;
  /** The register or its resource is being deleted, so it depends on the set no longer. */
  readonly isDeleting: boolean;
  /** Obstacle to changes of its members, from its conditions. */
  readonly blocked?: string | undefined;
}

/** Input of the plan of a set. */
export interface SetFacts {
  readonly set: ValidatorSet;
  /** Name of the installation. */
  readonly installation: string;
  readonly nowMs: number;
  /** Undefined before its creation and while it is recreated. */
  readonly statefulSet?: StatefulSetFacts | undefined;
  /** Desired and existing members, by ordinal. */
  readonly members: readonly MemberFacts[];
  readonly registers: readonly BoundRegister[];
  /** Claims without a member, and claims that are annotated as left. */
  readonly retainedClaims?: readonly RetainedClaim[] | undefined;
  /** Why no member could be queried; missing reports then do not mean silence. */
  readonly unreachable?: string | undefined;
  /** Uid of the pod that was evicted last, until the cache shows its deletion. */
  readonly evictedUid?: string | undefined;
  /** The StatefulSet was just written, so its facts are outdated. */
  readonly isChanging?: boolean | undefined;
  /** Why this set may not start a rollout now. */
  readonly rolloutLimit?: string | undefined;
}
