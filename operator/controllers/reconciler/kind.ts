import type { Logger } from '#kit/log/log.ts';
import type { ConditionUpdate, Outcome } from '../../api/conditions.ts';
import type { Installation } from '../../api/installation.ts';
import type { ManagedKind } from '../../api/names.ts';
import type { Condition, CustomResource } from '../../api/object.ts';
import type { Reason } from '../../api/reasons.ts';
import type { Child } from '../../kube/apply.ts';
import type { EventDetails } from '../../kube/events.ts';
import type { KubeObject, Resource } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';

/** Members of every status. */
export interface BaseStatus {
  readonly observedGeneration?: number | undefined;
  readonly conditions?: readonly Condition[] | undefined;
}

export type ManagedResource = CustomResource<unknown, BaseStatus>;

/** One reconcile of one object. */
export interface ObjectRequest<R extends ManagedResource> {
  /** The raw object. */
  readonly object: KubeObject;
  /** The parsed object, with the status that was written last. */
  readonly resource: R;
  /** Aborted at the deadline; every call must use it. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Consecutive failures before this reconcile. */
  readonly failures: number;
}

/** Result of applying children. */
export interface AppliedChildren {
  /** False while another manager keeps changing a child; the reconciler reports it. */
  readonly isUncontested: boolean;
  /** Kinds of the children that were just written; the caches do not have these writes yet. */
  readonly written: ReadonlySet<string>;
}

export interface ReconcileRequest<R extends ManagedResource> extends ObjectRequest<R> {
  readonly installation: Installation;
  /**
   * Applies children in order and prunes those that are no longer desired.
   * @throws AdoptionRefused, ApiError, NotLeader
   */
  readonly applyChildren: (children: readonly Child[]) => Promise<AppliedChildren>;
}

export interface FinalizeRequest<R extends ManagedResource> extends ObjectRequest<R> {
  /** Undefined when it cannot be read; a deletion without external resources works without it. */
  readonly installation: Installation | undefined;
}

/** Result of a reconcile; the reconciler writes it to the status once. */
export interface ReconcileResult {
  readonly outcome: Outcome;
  /** Conditions besides Ready, Reconciling and Stalled. */
  readonly conditionUpdates?: readonly ConditionUpdate[];
  /** Members of the status besides conditions and observedGeneration. */
  readonly status?: Readonly<Record<string, unknown>>;
  readonly events?: readonly EventDetails[];
  /** Delay until the next reconcile without an event; five minutes with jitter when absent. */
  readonly requeueAfterMs?: number;
  /** Error of an action, which `outcome` describes. The status is written, then it is retried like a thrown error. */
  readonly failure?: unknown;
}

export type FinalizeResult =
  | { readonly done: true; readonly events?: readonly EventDetails[] }
  /** The object stays and its conditions give the reason. Without `retryAfterMs` the retry uses backoff up to five minutes. */
  | {
      readonly done: false;
      readonly reason: Reason;
      readonly message: string;
      readonly retryAfterMs?: number;
    };

/** A resource of another kind whose changes trigger reconciles. */
export interface RelatedResource {
  readonly resource: Resource;
  /** Keys (`namespace/name`) of the objects to reconcile. */
  readonly keysOf: (change: Change) => readonly string[];
}

/** The kind-specific part of a reconciler. */
export interface KindHandler<R extends ManagedResource> {
  readonly kind: ManagedKind;
  readonly resource: Resource;
  readonly parse: (value: unknown) => R;
  /** Kinds of children: their changes trigger a reconcile of the owner, and undesired ones are pruned. */
  readonly children: readonly Resource[];
  /** Other kinds that must be listed before a reconcile. */
  readonly reads?: readonly Resource[];
  readonly relatedResources?: readonly RelatedResource[];
  readonly reconcile: (request: ReconcileRequest<R>) => Promise<ReconcileResult>;
  /** If present, objects get the finalizer until this is done. It must be repeatable, also after it was done. */
  readonly finalize?: (request: FinalizeRequest<R>) => Promise<FinalizeResult>;
  /** Called after an object was deleted. */
  readonly forget?: (uid: string) => void;
}
