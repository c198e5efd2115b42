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
import type { Parts } from './dependencies.ts';
import { addFinalizer, removeFinalizer } from './finalizer.ts';
import type { Finalization, FinalizePass, Kind, Managed, Pass, Verdict } from './kind.ts';
import { Blocked, outcomeOf } from './requeue-error.ts';
import { wire } from './triggers.ts';

/** A controller that can be started once this process leads, and stopped. */
export interface Shell {
  readonly name: string;
  readonly controller: Controller;
  start(): void;
  stop(graceMs?: number): Promise<void>;
}

/**
 * Lets controllers work in a process that leads from now on, after a new look at everything: what the former leader did
 * last may not have reached the caches of this one, and would be undone.
 */
export async function begin(caches: Caches, shells: readonly Shell[]): Promise<void> {
  await caches.relist();
  for (const shell of shells) shell.start();
}

/** Annotation of a child with the hash of what was applied. */
const APPLIED = 'chancery.dev/applied';
const RESYNC_MS = 300_000;
/** While somebody else keeps changing what we set: how late that may be put back after it may. */
const CONTESTED_MS = 2_000;
/** How often a deletion looks for a service that is away: at most 3 times a minute, and twice within 60 s of its return. */
const AWAY_MS = 25_000;
/** The first time: it may have been away for a moment. */
const HICCUP_MS = 3_000;
/** After this time whoever waits for a deletion is told. */
const SLOW_MS = 3_000;
/** A child that goes away says so itself when it is gone. */
const TERMINATING_MS = 1_000;

/** Makes the controller of a kind: load, guard, reconcile, one status, events. */
export function createShell<R extends Managed>(parts: Parts, kind: Kind<R>): Shell {
  const { runtime, timing, metrics, caches } = parts;
  const name = kind.kind.toLowerCase();
  const work = new Work(parts, kind);
  const controller = new Controller({
    name,
    timing,
    metrics,
    log: runtime.log,
    reconcile: (key, context) => work.reconcile(key, context),
  });
  const unwire = wire(parts, kind, controller.queue, (uid) => work.forget(uid));
  return {
    name,
    controller,
    start: () => void caches.synced(kind.resource).then(() => controller.start()),
    stop: async (graceMs) => {
      unwire();
      await controller.stop(graceMs);
    },
  };
}

/** What a look at an object ends with. */
interface End {
  readonly verdict: Verdict;
  /** Said instead of what follows from the outcome; the spec was not looked at, so observedGeneration stays. */
  readonly instead?: ConditionUpdate;
}

class Work<R extends Managed> {
  readonly #parts: Parts;
  readonly #kind: Kind<R>;
  readonly #applier: Applier;
  readonly #statuses: StatusWriter;
  /** Uids of objects whose deletion waits for a service. */
  readonly #heldUp = new Set<string>();

  constructor(parts: Parts, kind: Kind<R>) {
    const { api, timing, caches } = parts;
    const managers = fieldManagers(kind.kind);
    this.#parts = parts;
    this.#kind = kind;
    this.#statuses = new StatusWriter({ api, resource: kind.resource, manager: managers.status });
    this.#applier = new Applier({
      api,
      timing,
      manager: managers.children,
      hashAnnotation: APPLIED,
      cacheOf: (resource) => caches.find(resource),
    });
  }

  forget(uid: string): void {
    this.#applier.forget(uid);
    this.#statuses.forget(uid);
    this.#heldUp.delete(uid);
    this.#kind.forget?.(uid);
  }

  async reconcile(key: string, { signal, log, failures }: ReconcileContext): Promise<Requeue | undefined> {
    const object = this.#parts.caches.of(this.#kind.resource).find(key);
    if (object === undefined) return undefined;
    const pass = { object, resource: this.#parse(object, log), signal, log, failures };
    try {
      const end = await this.#look(pass);
      if (end === undefined) return undefined;
      await this.#report(pass, end);
      return { requeueAfterMs: end.verdict.requeueAfterMs ?? this.#jittered(RESYNC_MS) };
    } catch (error) {
      await this.#reportFailure(pass, error);
      const againMs = againIn(error);
      if (againMs === undefined) throw error;
      return { requeueAfterMs: againMs };
    }
  }

  #parse(object: KubeObject, log: Logger): R {
    const status = this.#statuses.latest(object);
    try {
      return this.#kind.parse({ ...object, status });
    } catch (error) {
      // written by a newer version of the API: what cannot be read is not touched
      log.error({ err: error }, 'The object cannot be read by this version of the operator');
      throw error;
    }
  }

  /** Undefined when nothing is left to say. */
  async #look(pass: Pass<R>): Promise<End | undefined> {
    const { metadata } = pass.resource;
    const isDeleting = metadata.deletionTimestamp !== undefined;
    const isForced = isDeleting && forceDeletion(metadata) === 'yes';
    if (!this.#parts.installations.isOurs(metadata.namespace)) return undefined;
    if (isPaused(metadata) && !isForced) return this.#paused(pass);
    this.#parts.caches.require([this.#kind.resource, configMaps]);
    if (isDeleting) return this.#finalize(pass, isForced);
    const { installation, fault } = this.#parts.installations.find(metadata.namespace);
    if (installation === undefined) {
      const outcome = stalled('InstallationConfigInvalid', fault.message);
      return { verdict: { outcome } };
    }
    this.#parts.caches.require([...this.#kind.children, ...(this.#kind.reads ?? [])]);
    if (this.#kind.finalize !== undefined && !metadata.finalizers.includes(FINALIZER)) {
      await addFinalizer(this.#parts.api, this.#kind.resource, pass.object, pass.signal);
      // the object comes again, with the finalizer
      return undefined;
    }
    let contested: Outcome | undefined;
    const verdict = await this.#kind.reconcile({
      ...pass,
      installation,
      applyChildren: async (children) => {
        const of = { ...this.#parts, applier: this.#applier, kind: this.#kind, pass, children };
        const applied = await applyChildren(of);
        contested = applied.contested;
        return { written: applied.written, areOurs: contested === undefined };
      },
    });
    if (contested === undefined) return { verdict };
    const requeueAfterMs = Math.min(CONTESTED_MS, verdict.requeueAfterMs ?? Infinity);
    return { verdict: { ...verdict, outcome: contested, requeueAfterMs } };
  }

  #paused({ resource }: Pass<R>): End {
    const before = findCondition(resource.status.conditions, 'Ready');
    const message = `Nothing is changed while the annotation ${annotations.paused} is "true"`;
    const status = before?.status ?? 'Unknown';
    const outcome = { state: 'ready', reason: 'Paused', message } as const;
    return { verdict: { outcome }, instead: { type: 'Ready', status, reason: 'Paused', message } };
  }

  async #finalize(pass: Pass<R>, isForced: boolean): Promise<End | undefined> {
    const { finalize, resource } = this.#kind;
    const { metadata } = pass.resource;
    if (finalize === undefined || !metadata.finalizers.includes(FINALIZER)) return undefined;
    const { recorder, api, installations } = this.#parts;
    const leave = async () => removeFinalizer(api, resource, pass.object, pass.signal);
    if (isForced) {
      await leave();
      recorder.record(
        pass.object,
        warning('DeletionBlocked', 'Delete', 'Deleted by force, without cleaning up'),
      );
      return undefined;
    }
    if (forceDeletion(metadata) === 'wrong-uid') {
      const note = `${annotations.forceDelete} is ignored: it does not hold the uid ${metadata.uid}`;
      recorder.record(pass.object, warning('DeletionBlocked', 'Delete', note));
    }
    const { installation } = installations.find(metadata.namespace);
    const outcome = await this.#tryFinalize({ ...pass, installation });
    if (outcome.done) {
      for (const event of outcome.events ?? []) recorder.record(pass.object, event);
      await leave();
      return undefined;
    }
    const { reason, message, retryAfterMs } = outcome;
    // without a time of its own it is a failure, with pauses that grow
    const after = retryAfterMs === undefined ? {} : { retryAfterMs };
    throw new Blocked(reason, message, after);
  }

  /** Says so when the cleanup takes its time: a service that is silent is given up only after a while. */
  async #tryFinalize(pass: FinalizePass<R>): Promise<Finalization> {
    const { promise, resolve } = Promise.withResolvers<'slow'>();
    const cancel = this.#parts.timing.after(SLOW_MS, () => resolve('slow'));
    const cleanup = this.#cleanUp(pass);
    try {
      const first = await Promise.race([cleanup, promise]);
      if (first !== 'slow') return first;
      const before = findCondition(pass.resource.status.conditions, 'Ready');
      const message = 'Cannot be deleted yet: the cleanup waits for an answer';
      if (before?.reason !== 'DeletionBlocked')
        await this.#reportFailure(pass, new Blocked('DeletionBlocked', message));
      return await cleanup;
    } finally {
      cancel();
    }
  }

  async #cleanUp(pass: FinalizePass<R>): Promise<Finalization> {
    const startedAtMs = this.#parts.timing.monotonicMs();
    try {
      return (await this.#kind.finalize?.(pass)) ?? { done: true };
    } catch (error) {
      const why = outcomeOf(error, pass.failures);
      if (error instanceof Blocked || why === undefined) throw error;
      const again =
        why.reason === 'DependencyNotReady' ? { retryAfterMs: this.#holdUp(pass, error, startedAtMs) } : {};
      throw new Blocked('DeletionBlocked', `Cannot be deleted yet: ${why.message}`, {
        ...again,
        cause: error,
      });
    }
  }

  /** When a deletion that met a service that is away looks again. The time that it waited for an answer counts. */
  #holdUp({ resource, log }: Pass<R>, error: unknown, startedAtMs: number): number {
    const { uid } = resource.metadata;
    const spentMs = this.#parts.timing.monotonicMs() - startedAtMs;
    if (this.#heldUp.has(uid)) return Math.max(HICCUP_MS, this.#jittered(AWAY_MS) - spentMs);
    this.#heldUp.add(uid);
    log.warn({ err: error }, 'The deletion waits for a service');
    return this.#jittered(HICCUP_MS);
  }

  async #report(pass: Pass<R>, { verdict, instead }: End): Promise<void> {
    const { recorder, timing } = this.#parts;
    const { metadata, status: before } = pass.resource;
    const stamp = { generation: metadata.generation, now: stampTime(timing.nowMs()) };
    const said = instead === undefined ? outcomeUpdates(verdict.outcome) : [instead];
    const conditionUpdates = [...said, ...(verdict.conditionUpdates ?? [])];
    const conditions = setConditions(before.conditions ?? [], conditionUpdates, stamp);
    const observedGeneration = instead === undefined ? metadata.generation : before.observedGeneration;
    const status = { ...(verdict.status ?? before), observedGeneration, conditions };
    await this.#statuses.write(pass.object, status, pass.signal);
    for (const event of verdict.events ?? []) recorder.record(pass.object, event);
    const turn = turnOf(pass.resource, verdict.outcome);
    if (turn !== undefined) recorder.record(pass.object, turn);
  }

  /** Says in the conditions what went wrong; in an event when the role does not allow even that. */
  async #reportFailure(pass: Pass<R>, error: unknown): Promise<void> {
    if (pass.signal.aborted) return;
    const outcome = outcomeOf(error, pass.failures);
    if (outcome === undefined) return;
    try {
      await this.#report(pass, { verdict: { outcome } });
    } catch (cause) {
      if (!isAppError(cause)) throw cause;
      pass.log.warn({ err: cause }, 'The status could not be written');
      const why = isApiError(cause, 'Forbidden') ? outcomeOf(cause, pass.failures) : undefined;
      if (why === undefined) return;
      this.#parts.recorder.record(pass.object, warning(why.reason, 'Report', why.message));
    }
  }

  #jittered(ms: number): number {
    return ms * (0.9 + 0.2 * this.#parts.timing.random());
  }
}

/** For what is no failure: when to look again. */
function againIn(error: unknown): number | undefined {
  if (error instanceof Blocked) return error.retryAfterMs;
  return isAppError(error) && error.code === 'CHILD_TERMINATING' ? TERMINATING_MS : undefined;
}

function warning(reason: Outcome['reason'], action: string, note: string): EventDetails {
  return { type: 'Warning', reason, action, note };
}

const calm = new Set([
  'Reconciled',
  'Progressing',
  'WaitingForPods',
  'GenesisPending',
  'Paused',
  'Suspended',
]);

/** An event when the reason of Ready turns. */
function turnOf({ status }: Managed, { reason, message }: Outcome): EventDetails | undefined {
  const before = findCondition(status.conditions, 'Ready');
  if (before?.reason === reason) return undefined;
  return { type: calm.has(reason) ? 'Normal' : 'Warning', reason, action: 'Reconcile', note: message };
}
