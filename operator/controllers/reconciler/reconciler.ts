import { isAppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import {
  type ConditionUpdate,
  findCondition,
  type Outcome,
  outcomeUpdates,
  setConditions,
  stampTime,
} from '../../api/conditions.ts';
import { annotations, FINALIZER, fieldManagers, forceDeletion, isPaused } from '../../api/names.ts';
import { RequeueError } from '../../api/requeue-error.ts';
import { Applier } from '../../kube/apply.ts';
import { Controller, type ReconcileContext, type Requeue } from '../../kube/controller.ts';
import { isApiError } from '../../kube/errors.ts';
import type { EventDetails } from '../../kube/events.ts';
import { configMaps } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { StatusWriter } from '../../kube/status.ts';
import { stalled } from '../../plan/outcome.ts';
import { applyChildren } from './apply-children.ts';
import type { Caches } from './caches.ts';
import type { Dependencies } from './dependencies.ts';
import { outcomeOf } from './error-outcome.ts';
import { addFinalizer, removeFinalizer } from './finalizer.ts';
import type {
  FinalizeRequest,
  FinalizeResult,
  KindHandler,
  ManagedResource,
  ObjectRequest,
  ReconcileResult,
} from './kind.ts';
import { subscribeTriggers } from './triggers.ts';

/** A controller that is started when this process becomes leader. */
export interface Reconciler {
  readonly name: string;
  readonly controller: Controller;
  start(): void;
  stop(graceMs?: number): Promise<void>;
}

/**
 * Starts the controllers of a new leader after a relist. Without it the last writes of the former leader may be missing
 * from the caches and would be undone.
 */
export async function startAsLeader(caches: Caches, reconcilers: readonly Reconciler[]): Promise<void> {
  await caches.relist();
  for (const reconciler of reconcilers) reconciler.start();
}

/** Annotation of a child with the hash of the applied object. */
const APPLIED_HASH_ANNOTATION = 'chancery.dev/applied';
const resyncMs = 300_000;
/** Requeue delay while another manager keeps changing a child. */
const contestedRetryMs = 2_000;
/** Retry interval of a deletion that waits for an unavailable service. */
const unavailableRetryMs = 25_000;
/** First retry of such a deletion: the service may have been unavailable for a moment. */
const firstServiceRetryMs = 3_000;
/** A cleanup that takes longer is reported in the conditions. */
const slowCleanupMs = 3_000;
/** Requeue delay while a child is being deleted; its deletion also triggers a reconcile. */
const terminatingMs = 1_000;

/** Creates the controller of a kind: load, checks, reconcile, one status write, events. */
export function createReconciler<R extends ManagedResource>(
  dependencies: Dependencies,
  kind: KindHandler<R>,
): Reconciler {
  const { runtime, timing, metrics, caches } = dependencies;
  const name = kind.kind.toLowerCase();
  const objects = new ObjectReconciler(dependencies, kind);
  const controller = new Controller({
    name,
    timing,
    metrics,
    log: runtime.log,
    reconcile: (key, context) => objects.reconcile(key, context),
  });
  const unsubscribe = subscribeTriggers(dependencies, kind, controller.queue, (uid) => objects.forget(uid));
  return {
    name,
    controller,
    start: () => void caches.synced(kind.resource).then(() => controller.start()),
    stop: async (graceMs) => {
      unsubscribe();
      await controller.stop(graceMs);
    },
  };
}

/** The end of a reconcile that has something to report. */
interface CompletedReconcile {
  readonly result: ReconcileResult;
  /** Replaces the conditions of the outcome. The spec was not processed, so observedGeneration stays. */
  readonly readyOverride?: ConditionUpdate;
}

class ObjectReconciler<R extends ManagedResource> {
  readonly #dependencies: Dependencies;
  readonly #kind: KindHandler<R>;
  readonly #applier: Applier;
  readonly #statuses: StatusWriter;
  /** Uids of objects whose deletion waits for a service. */
  readonly #waitingForService = new Set<string>();

  constructor(dependencies: Dependencies, kind: KindHandler<R>) {
    const { api, timing, caches } = dependencies;
    const managers = fieldManagers(kind.kind);
    this.#dependencies = dependencies;
    this.#kind = kind;
    this.#statuses = new StatusWriter({ api, resource: kind.resource, manager: managers.status });
    this.#applier = new Applier({
      api,
      timing,
      manager: managers.children,
      hashAnnotation: APPLIED_HASH_ANNOTATION,
      cacheOf: (resource) => caches.find(resource),
    });
  }

  forget(uid: string): void {
    this.#applier.forget(uid);
    this.#statuses.forget(uid);
    this.#waitingForService.delete(uid);
    this.#kind.forget?.(uid);
  }

  async reconcile(key: string, { signal, log, failures }: ReconcileContext): Promise<Requeue | undefined> {
    const object = this.#dependencies.caches.of(this.#kind.resource).find(key);
    if (object === undefined) return undefined;
    const request = { object, resource: this.#parse(object, log), signal, log, failures };
    let result: ReconcileResult;
    try {
      const completed = await this.#reconcileObject(request);
      if (completed === undefined) return undefined;
      await this.#report(request, completed);
      result = completed.result;
    } catch (error) {
      await this.#reportFailure(request, error);
      return requeueAfter(error);
    }
    if (result.failure !== undefined) return requeueAfter(result.failure);
    return { requeueAfterMs: result.requeueAfterMs ?? this.#jittered(resyncMs) };
  }

  #parse(object: KubeObject, log: Logger): R {
    const status = this.#statuses.latest(object);
    try {
      return this.#kind.parse({ ...object, status });
    } catch (error) {
      // written for a newer version of the API; an unreadable object is not changed
      log.error({ err: error }, 'This version of the operator cannot parse the object; upgrade the operator');
      throw error;
    }
  }

  /** Undefined when there is nothing to report. */
  async #reconcileObject(request: ObjectRequest<R>): Promise<CompletedReconcile | undefined> {
    const { metadata } = request.resource;
    const isDeleting = metadata.deletionTimestamp !== undefined;
    const isForced = isDeleting && forceDeletion(metadata) === 'yes';
    if (!this.#dependencies.installations.isOurs(metadata.namespace)) return undefined;
    if (isPaused(metadata) && !isForced) return this.#pausedResult(request);
    this.#dependencies.caches.require([this.#kind.resource, configMaps]);
    if (isDeleting) return this.#finalize(request, isForced);
    const { installation, fault } = this.#dependencies.installations.find(metadata.namespace);
    if (installation === undefined) {
      const outcome = stalled('InstallationConfigInvalid', fault.message);
      return { result: { outcome } };
    }
    this.#dependencies.caches.require([...this.#kind.children, ...(this.#kind.reads ?? [])]);
    if (this.#kind.finalize !== undefined && !metadata.finalizers.includes(FINALIZER)) {
      await addFinalizer(this.#dependencies.api, this.#kind.resource, request.object, request.signal);
      // the patch triggers another reconcile
      return undefined;
    }
    let contested: Outcome | undefined;
    const result = await this.#kind.reconcile({
      ...request,
      installation,
      applyChildren: async (children) => {
        const of = { ...this.#dependencies, applier: this.#applier, kind: this.#kind, request, children };
        const applied = await applyChildren(of);
        contested = applied.contested;
        return { written: applied.written, isUncontested: contested === undefined };
      },
    });
    if (contested === undefined) return { result };
    const requeueAfterMs = Math.min(contestedRetryMs, result.requeueAfterMs ?? Infinity);
    return { result: { ...result, outcome: contested, requeueAfterMs } };
  }

  #pausedResult({ resource }: ObjectRequest<R>): CompletedReconcile {
    const before = findCondition(resource.status.conditions, 'Ready');
    const message = `Reconciliation is paused by the annotation ${annotations.paused}: "true"; remove it to resume`;
    const status = before?.status ?? 'Unknown';
    const outcome = { state: 'ready', reason: 'Paused', message } as const;
    return { result: { outcome }, readyOverride: { type: 'Ready', status, reason: 'Paused', message } };
  }

  async #finalize(request: ObjectRequest<R>, isForced: boolean): Promise<CompletedReconcile | undefined> {
    const { finalize, resource } = this.#kind;
    const { metadata } = request.resource;
    if (finalize === undefined || !metadata.finalizers.includes(FINALIZER)) return undefined;
    const { recorder, api, installations } = this.#dependencies;
    const release = async () => removeFinalizer(api, resource, request.object, request.signal);
    if (isForced) {
      await release();
      recorder.record(
        request.object,
        warning(
          'DeletionBlocked',
          'Delete',
          'Deleted without cleanup, as the force-delete annotation requests',
        ),
      );
      return undefined;
    }
    if (forceDeletion(metadata) === 'wrong-uid') {
      const note = `${annotations.forceDelete} is ignored: its value is not the uid ${metadata.uid}`;
      recorder.record(request.object, warning('DeletionBlocked', 'Delete', note));
    }
    const { installation } = installations.find(metadata.namespace);
    const outcome = await this.#tryFinalize({ ...request, installation });
    if (outcome.done) {
      for (const event of outcome.events ?? []) recorder.record(request.object, event);
      await release();
      return undefined;
    }
    const { reason, message, retryAfterMs } = outcome;
    // without retryAfterMs it is retried with backoff
    const after = retryAfterMs === undefined ? {} : { retryAfterMs };
    throw new RequeueError(reason, message, after);
  }

  /** Reports a slow cleanup in the conditions: the timeout of a silent service is long. */
  async #tryFinalize(request: FinalizeRequest<R>): Promise<FinalizeResult> {
    const { promise, resolve } = Promise.withResolvers<'slow'>();
    const cancel = this.#dependencies.timing.after(slowCleanupMs, () => resolve('slow'));
    const cleanup = this.#cleanUp(request);
    try {
      const first = await Promise.race([cleanup, promise]);
      if (first !== 'slow') return first;
      const before = findCondition(request.resource.status.conditions, 'Ready');
      const message = 'Cannot be deleted yet: the cleanup waits for a service';
      if (before?.reason !== 'DeletionBlocked')
        await this.#reportFailure(request, new RequeueError('DeletionBlocked', message));
      return await cleanup;
    } finally {
      cancel();
    }
  }

  async #cleanUp(request: FinalizeRequest<R>): Promise<FinalizeResult> {
    const startedAtMs = this.#dependencies.timing.monotonicMs();
    try {
      return (await this.#kind.finalize?.(request)) ?? { done: true };
    } catch (error) {
      const outcome = outcomeOf(error, request.failures);
      if (error instanceof RequeueError || outcome === undefined) throw error;
      const again =
        outcome.reason === 'DependencyNotReady'
          ? { retryAfterMs: this.#serviceRetryMs(request, error, startedAtMs) }
          : {};
      throw new RequeueError('DeletionBlocked', `Cannot be deleted yet: ${outcome.message}`, {
        ...again,
        cause: error,
      });
    }
  }

  /** Retry delay of a deletion that waits for a service, minus the time that the attempt took. */
  #serviceRetryMs({ resource, log }: ObjectRequest<R>, error: unknown, startedAtMs: number): number {
    const { uid } = resource.metadata;
    const spentMs = this.#dependencies.timing.monotonicMs() - startedAtMs;
    if (this.#waitingForService.has(uid))
      return Math.max(firstServiceRetryMs, this.#jittered(unavailableRetryMs) - spentMs);
    this.#waitingForService.add(uid);
    log.warn({ err: error }, 'The deletion waits for an unavailable service');
    return this.#jittered(firstServiceRetryMs);
  }

  async #report(request: ObjectRequest<R>, { result, readyOverride }: CompletedReconcile): Promise<void> {
    const { recorder, timing } = this.#dependencies;
    const { metadata, status: before } = request.resource;
    const stamp = { generation: metadata.generation, now: stampTime(timing.nowMs()) };
    const readyUpdates = readyOverride === undefined ? outcomeUpdates(result.outcome) : [readyOverride];
    const conditionUpdates = [...readyUpdates, ...(result.conditionUpdates ?? [])];
    const conditions = setConditions(before.conditions ?? [], conditionUpdates, stamp);
    const observedGeneration = readyOverride === undefined ? metadata.generation : before.observedGeneration;
    const status = { ...(result.status ?? before), observedGeneration, conditions };
    await this.#statuses.write(request.object, status, request.signal);
    for (const event of result.events ?? []) recorder.record(request.object, event);
    const reasonChange = reasonChangeEvent(request.resource, result.outcome);
    if (reasonChange !== undefined) recorder.record(request.object, reasonChange);
  }

  /** Reports a failure in the conditions, or in an event when the role does not allow status writes. */
  async #reportFailure(request: ObjectRequest<R>, error: unknown): Promise<void> {
    if (request.signal.aborted) return;
    const outcome = outcomeOf(error, request.failures);
    if (outcome === undefined) return;
    try {
      await this.#report(request, { result: { outcome } });
    } catch (cause) {
      if (!isAppError(cause)) throw cause;
      request.log.warn({ err: cause }, 'The status could not be written');
      const outcome = isApiError(cause, 'Forbidden') ? outcomeOf(cause, request.failures) : undefined;
      if (outcome === undefined) return;
      this.#dependencies.recorder.record(request.object, warning(outcome.reason, 'Report', outcome.message));
    }
  }

  #jittered(ms: number): number {
    return ms * (0.9 + 0.2 * this.#dependencies.timing.random());
  }
}

/**
 * Requeue after an error that does not count as a failure.
 * @throws all other errors, so that they are retried with backoff
 */
function requeueAfter(error: unknown): Requeue {
  const delayMs = requeueDelayMs(error);
  if (delayMs === undefined) throw error;
  return { requeueAfterMs: delayMs };
}

function requeueDelayMs(error: unknown): number | undefined {
  if (error instanceof RequeueError) return error.retryAfterMs;
  return isAppError(error) && error.code === 'CHILD_TERMINATING' ? terminatingMs : undefined;
}

function warning(reason: Outcome['reason'], action: string, note: string): EventDetails {
  return { type: 'Warning', reason, action, note };
}

const normalReasons = new Set([
  'Reconciled',
  'Progressing',
  'WaitingForPods',
  'GenesisPending',
  'Paused',
  'Suspended',
]);

/** An event for a change of the reason of Ready. */
function reasonChangeEvent(
  { status }: ManagedResource,
  { reason, message }: Outcome,
): EventDetails | undefined {
  const before = findCondition(status.conditions, 'Ready');
  if (before?.reason === reason) return undefined;
  return {
    type: normalReasons.has(reason) ? 'Normal' : 'Warning',
    reason,
    action: 'Reconcile',
    note: message,
  };
}
