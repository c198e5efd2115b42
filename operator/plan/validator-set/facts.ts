import type { ValidatorSet } from '../../api/validator-set.ts';

/** What a register is to one member, in the member's own words. */
export interface RegisterReport {
  readonly registerId: string;
  readonly status: string;
  readonly membership: string;
  readonly isMember: boolean;
  /** Docket that is being decided: as many are sealed. */
  readonly height: number;
  readonly round: number;
  readonly role: string;
  readonly isProposer: boolean;
  readonly quorum: number;
  /** Validator ids of the members. */
  readonly members: readonly string[];
  /** Dockets that others say they have beyond its own. */
  readonly behind: number;
  readonly roots: readonly { readonly height: number; readonly root: string }[];
  readonly evidence: readonly { readonly kind: string; readonly validatorIds: readonly string[] }[];
}

/** What a member says of itself. It answers for itself alone. */
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
  /** Since when; of a pod that is not ready since when it is not. Milliseconds of the epoch. */
  readonly readySinceMs: number;
  readonly isTerminating: boolean;
  /** Its own node says that its container does not work; of a node that is silent nothing is known. */
  readonly isBroken: boolean;
  /** Revision of the StatefulSet that it was made from. */
  readonly revision: string;
  readonly node?: string | undefined;
  readonly address?: string | undefined;
  /** Why its container does not run: CrashLoopBackOff, ImagePullBackOff, Unschedulable ... */
  readonly trouble?: string | undefined;
  /** Somebody wants this very pod to be replaced. */
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

/** A claim that no member has now, or that was noted as such. */
export interface RetainedClaim {
  readonly ordinal: number;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** Since when its member is gone, as was noted on it; milliseconds of the epoch, undefined when nothing is noted. */
  readonly leftAtMs?: number | undefined;
}

export interface MemberFacts {
  readonly ordinal: number;
  readonly name: string;
  readonly pod?: PodFacts | undefined;
  readonly claim?: ClaimFacts | undefined;
  /** Undefined when it did not answer within 5 s: unknown, and never safe. */
  readonly report?: MemberReport | undefined;
  /** When it last answered; milliseconds of the epoch. */
  readonly answeredAtMs?: number | undefined;
  /** It has become ready and was not asked since: that it has not answered says nothing. */
  readonly isUnqueried?: boolean | undefined;
  /** Since when it has said the height that it says now, by register id; milliseconds of the epoch. */
  readonly heightSinceMs?: ReadonlyMap<string, number> | undefined;
}

export interface StatefulSetFacts {
  readonly uid: string;
  readonly replicas: number;
  /** Revision of the template that is wanted; undefined until the cluster has seen the last change. */
  readonly updateRevision?: string | undefined;
  /** Size in its claim template, a quantity. */
  readonly claimSize?: string | undefined;
}

/** A Register that the set seals. */
export interface BoundRegister {
  readonly name: string;
  readonly registerId?: string | undefined;
  /** The register or its resource is deleted: nobody counts on it any more. */
  readonly isDeleting: boolean;
  /** What keeps it from changing its members, in the words of its conditions. */
  readonly blocked?: string | undefined;
}

/** Everything that a plan for a set is made from. */
export interface SetFacts {
  readonly set: ValidatorSet;
  /** Name of the installation. */
  readonly installation: string;
  readonly nowMs: number;
  /** Undefined before it was made, and while it is made anew. */
  readonly statefulSet?: StatefulSetFacts | undefined;
  /** Every ordinal that is wanted or there, in order. */
  readonly members: readonly MemberFacts[];
  readonly registers: readonly BoundRegister[];
  /** Claims that no member has now, and those that were noted as such. */
  readonly retainedClaims?: readonly RetainedClaim[] | undefined;
  /** Why nobody could be asked; the silence of members means nothing then. */
  readonly unreachable?: string | undefined;
  /** Uid of the pod that was evicted last, until the cache has seen it go. */
  readonly evictedUid?: string | undefined;
  /** Its StatefulSet was written just now: what is known of it is from before. */
  readonly isChanging?: boolean | undefined;
  /** Why no other set may begin a roll now. */
  readonly rolloutLimit?: string | undefined;
}
