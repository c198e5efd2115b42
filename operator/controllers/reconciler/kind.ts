import type { Logger } from '#kit/log/log.ts';
import type { ConditionUpdate, Outcome } from '../../api/conditions.ts';
import type { ManagedKind } from '../../api/names.ts';
import type { Condition, CustomResource } from '../../api/object.ts';
import type { Reason } from '../../api/reasons.ts';
import type { Child } from '../../kube/apply.ts';
import type { EventDetails } from '../../kube/events.ts';
import type { KubeObject, Resource } from '../../kube/resource.ts';
import type { Change } from '../../kube/store.ts';
import type { Installation } from '../../platform/installation.ts';

/** The least that a status has. */
export interface BaseStatus {
  readonly observedGeneration?: number | undefined;
  readonly conditions?: readonly Condition[] | undefined;
}

export type Managed = CustomResource<unknown, BaseStatus>;

/** One look at one object. */
export interface Pass<R extends Managed> {
  /** As the cluster has it. */
  readonly object: KubeObject;
  /** The same, parsed, with the status that was written last. */
  readonly resource: R;
  /** Aborted when the time is up; every call takes it. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Failures in a row before this look. */
  readonly failures: number;
}

/** What applying children has come to. */
export interface AppliedChildren {
  /** False while somebody keeps changing one of them, which the shell says. */
  readonly areOurs: boolean;
  /** Kinds of those that were written just now: the caches do not have that yet. */
  readonly written: ReadonlySet<string>;
}

export interface ReconcilePass<R extends Managed> extends Pass<R> {
  readonly installation: Installation;
  /**
   * Applies children in order and deletes those that are not wanted any more.
   * @throws AdoptionRefused, ApiError, NotLeader
   */
  readonly applyChildren: (children: readonly Child[]) => Promise<AppliedChildren>;
}

export interface FinalizePass<R extends Managed> extends Pass<R> {
  /** Undefined when it cannot be read: deletion is possible without it where nothing outside is touched. */
  readonly installation: Installation | undefined;
}

/** What a reconcile found. The shell writes it, once. */
export interface Verdict {
  readonly outcome: Outcome;
  /** Conditions besides Ready, Reconciling and Stalled. */
  readonly conditionUpdates?: readonly ConditionUpdate[];
  /** Members of the status besides conditions and observedGeneration. */
  readonly status?: Readonly<Record<string, unknown>>;
  readonly events?: readonly EventDetails[];
  /** When to look again although nothing has happened; five minutes, jittered, when absent. */
  readonly requeueAfterMs?: number;
}

export type Finalization =
  | { readonly done: true; readonly events?: readonly EventDetails[] }
  /** Stays, with this said in its conditions. `retryAfterMs` absent: pauses grow up to five minutes. */
  | {
      readonly done: false;
      readonly reason: Reason;
      readonly message: string;
      readonly retryAfterMs?: number;
    };

/** Objects of other kinds whose changes make an object be looked at. */
export interface Wake {
  readonly resource: Resource;
  /** Keys (`namespace/name`) of the objects to look at. */
  readonly keysOf: (change: Change) => readonly string[];
}

/** What is special about a kind; the shell does the rest. */
export interface Kind<R extends Managed> {
  readonly kind: ManagedKind;
  readonly resource: Resource;
  readonly parse: (value: unknown) => R;
  /** Kinds of children: their changes wake the owner, and those that are not wanted any more are deleted. */
  readonly children: readonly Resource[];
  /** Further kinds that must be listed before a reconcile. */
  readonly reads?: readonly Resource[];
  readonly wakes?: readonly Wake[];
  readonly reconcile: (pass: ReconcilePass<R>) => Promise<Verdict>;
  /** With it an object keeps the finalizer until this is done. It may be called again after it was done. */
  readonly finalize?: (pass: FinalizePass<R>) => Promise<Finalization>;
  /** Called when an object is gone. */
  readonly forget?: (uid: string) => void;
}
