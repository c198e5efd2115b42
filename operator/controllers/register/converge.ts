import type { Register } from '../../api/register.ts';
import type { Tenant } from '../../api/tenant.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';
import type { EventDetails } from '../../kube/events.ts';
import type { DesiredRegister, RegisterFacts } from '../../plan/register/facts.ts';
import { planRegister, type RegisterPlan, type RegisterStep } from '../../plan/register/plan.ts';
import { registerStatus } from '../../plan/register/status.ts';
import type { Clients } from '../../platform/clients.ts';
import { isRefusal } from '../../platform/refusals.ts';
import type { ReconcileRequest, ReconcileResult } from '../reconciler/kind.ts';
import { judgeChange, outcomeOfCreation } from './refusals.ts';
import type { RefusedChanges } from './refused-changes.ts';

/** Objects of the cluster that a register depends on. */
export interface RelatedObjects {
  readonly tenant: Tenant | undefined;
  readonly validatorSet: ValidatorSet | undefined;
  /** Names of all validator sets of the namespace. */
  readonly setNames: readonly string[];
  /** Whether a Register of this uid is in the cluster. */
  readonly isResourceOf: (uid: string) => boolean;
}

interface ConvergeDeps {
  readonly clients: Pick<Clients, 'registers' | 'wallets'>;
  readonly refusedChanges: RefusedChanges;
  readonly nowMs: () => number;
  readonly relatedObjects: () => RelatedObjects;
}

type ObjectRequest = Pick<ReconcileRequest<Register>, 'resource' | 'signal' | 'log'>;

/** Rounds of observe, plan and act: creation, one change per aggregate, and a final observation. */
const maxRounds = 3;
/** Resync interval of an unchanged register. */
const resyncMs = 30_000;
/** Interval while a transaction waits for its docket. */
const progressPollMs = 2_000;
/** Interval while a completed step has no visible effect yet. */
const contestedRetryMs = 10_000;
const refusedRetryMs = 300_000;

/** Observes, plans and acts until no step is left. */
export async function converge(deps: ConvergeDeps, request: ObjectRequest): Promise<ReconcileResult> {
  const events: EventDetails[] = [];
  const done = new Set<string>();
  for (let round = 1; ; round += 1) {
    const { plan, facts } = await observeAndPlan(deps, request);
    const steps = plan.steps.filter((step) => !done.has(JSON.stringify(step)));
    // a repeated step either takes time or is undone by another client
    if (steps.length === 0 || round > maxRounds) {
      return { ...plan.judgement, events, requeueAfterMs: requeueMs(plan, facts) };
    }
    for (const step of steps) {
      done.add(JSON.stringify(step));
      const end = await attempt(deps, request, { step, facts });
      if (end !== undefined) return { ...plan.judgement, ...end, events };
      events.push({ type: 'Normal', reason: 'Progressing', action: 'Change', note: step.summary });
    }
  }
}

async function observeAndPlan(
  { clients, refusedChanges, nowMs, relatedObjects }: ConvergeDeps,
  { resource, signal }: ObjectRequest,
) {
  const { uid } = resource.metadata;
  const facts = await clients.registers.find(uid, signal);
  const now = nowMs();
  const refused = refusedChanges.find(uid, facts, now);
  const plan = planRegister({ register: resource, ...relatedObjects(), facts, refused, nowMs: now });
  return { plan, facts };
}

function requeueMs({ judgement, steps }: RegisterPlan, facts: RegisterFacts | undefined): number {
  const { state, reason } = judgement.outcome;
  if (steps.length > 0) return contestedRetryMs;
  if (state === 'stalled' && facts === undefined) return refusedRetryMs;
  const isUnderWay = reason === 'GenesisPending' || reason === 'PolicyPending' || reason === 'Progressing';
  const isSoon = facts?.phase === 'GenesisSubmitted' || (facts?.outstanding.length ?? 0) > 0;
  return isUnderWay && isSoon ? progressPollMs : resyncMs;
}

interface Attempt {
  readonly step: RegisterStep;
  readonly facts: RegisterFacts | undefined;
}

/** Carries out a step; returns a result if the reconcile ends with it. */
async function attempt(
  deps: ConvergeDeps,
  request: ObjectRequest,
  { step, facts }: Attempt,
): Promise<Partial<ReconcileResult> | undefined> {
  request.log.info({ action: step.action }, step.summary);
  if (step.action === 'upsert') return createOrFail(deps, request, step.desired, facts);
  if (step.action === 'change' && facts !== undefined) await change(deps, request, step, facts);
  if (step.action === 'validation') {
    const { resource, signal } = request;
    await deps.clients.registers.setValidation(resource.metadata.uid, step.state, signal);
  }
  return undefined;
}

/** Requests a change; a refusal is remembered for the next plan. */
async function change(
  { clients, refusedChanges, nowMs }: ConvergeDeps,
  { resource, signal }: ObjectRequest,
  step: Extract<RegisterStep, { readonly action: 'change' }>,
  facts: RegisterFacts,
): Promise<void> {
  const { uid } = resource.metadata;
  try {
    await clients.registers.change(uid, step.change, signal);
  } catch (error) {
    const refusal = judgeChange(error);
    if (refusal === 'unavailable') throw error;
    if (refusal === 'outdated') return;
    const message = error instanceof Error ? error.message : 'refused';
    refusedChanges.keep(uid, { ...step, facts }, { message, nowMs: nowMs() });
  }
}

/** Like create; a final refusal gives the phase Failed. */
async function createOrFail(
  deps: ConvergeDeps,
  request: ObjectRequest,
  desired: DesiredRegister,
  facts: RegisterFacts | undefined,
): Promise<Partial<ReconcileResult> | undefined> {
  const end = await create(deps, request, desired);
  if (end?.outcome?.state !== 'stalled') return end;
  const status = facts === undefined ? {} : registerStatus(facts);
  return { ...end, status: { ...status, phase: 'Failed' } };
}

/** Creates or adopts the register; a final refusal ends the reconcile. */
async function create(
  deps: ConvergeDeps,
  request: ObjectRequest,
  desired: DesiredRegister,
): Promise<Partial<ReconcileResult> | undefined> {
  const { clients, relatedObjects } = deps;
  const { signal } = request;
  const { uid } = request.resource.metadata;
  try {
    await clients.wallets.ensure(signal);
    await clients.registers.upsert(uid, desired, signal);
    return undefined;
  } catch (error) {
    const former = isRefusal(error, 'REGISTER_BOUND') ? error.members['uid'] : undefined;
    // the resource that was bound to the register no longer exists, so this one replaces it
    if (
      typeof former === 'string' &&
      desired.replaces === undefined &&
      !relatedObjects().isResourceOf(former)
    ) {
      return create(deps, request, { ...desired, replaces: former });
    }
    const outcome = outcomeOfCreation(error);
    if (outcome === undefined) throw error;
    const isFinal = outcome.state === 'stalled';
    return {
      outcome,
      requeueAfterMs: isFinal ? refusedRetryMs : 5_000,
    };
  }
}
