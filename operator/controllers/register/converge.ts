import type { Register } from '../../api/register.ts';
import type { Tenant } from '../../api/tenant.ts';
import type { ValidatorSet } from '../../api/validator-set.ts';
import type { EventDetails } from '../../kube/events.ts';
import type { RegisterFacts, RegisterWish } from '../../plan/register/facts.ts';
import { planRegister, type RegisterPlan, type RegisterStep } from '../../plan/register/plan.ts';
import { registerStatus } from '../../plan/register/status.ts';
import type { Clients } from '../../platform/clients.ts';
import { isRefusal } from '../../platform/refusals.ts';
import type { ReconcilePass, Verdict } from '../reconciler/kind.ts';
import { judgeChange, outcomeOfCreation } from './refusals.ts';
import type { RefusalMemory } from './refused-changes.ts';

/** What else of the cluster a register depends on. */
export interface Surroundings {
  readonly tenant: Tenant | undefined;
  readonly validatorSet: ValidatorSet | undefined;
  /** Names of all validator sets of the namespace. */
  readonly setNames: readonly string[];
  /** Whether a Register of this uid is in the cluster. */
  readonly isResourceOf: (uid: string) => boolean;
}

export interface ConvergeDeps {
  readonly clients: Pick<Clients, 'registers' | 'wallets'>;
  readonly memory: RefusalMemory;
  readonly nowMs: () => number;
  readonly surroundings: () => Surroundings;
}

type Pass = Pick<ReconcilePass<Register>, 'resource' | 'signal' | 'log'>;

/** Creation, one change of each aggregate, and a look at what came of it. */
const MAX_ROUNDS = 3;
/** Between two looks at a register that nothing happens to. */
const RESYNC_MS = 30_000;
/** While something is under way in the ledger. */
const BUSY_MS = 2_000;
/** While something was done that does not show yet. */
const CONTESTED_MS = 10_000;
const REFUSED_RETRY_MS = 300_000;

/** Looks, plans and acts until nothing is left to do but to wait. */
export async function converge(deps: ConvergeDeps, pass: Pass): Promise<Verdict> {
  const events: EventDetails[] = [];
  const done = new Set<string>();
  for (let round = 1; ; round += 1) {
    const { plan, facts } = await look(deps, pass);
    const steps = plan.steps.filter((step) => !done.has(JSON.stringify(step)));
    // what was done and is wanted again takes time, or somebody undoes it
    if (steps.length === 0 || round > MAX_ROUNDS) {
      return { ...plan.judgement, events, requeueAfterMs: nextLookMs(plan, facts) };
    }
    for (const step of steps) {
      done.add(JSON.stringify(step));
      const end = await attempt(deps, pass, { step, facts });
      if (end !== undefined) return { ...plan.judgement, ...end, events };
      events.push({ type: 'Normal', reason: 'Progressing', action: 'Change', note: step.says });
    }
  }
}

async function look({ clients, memory, nowMs, surroundings }: ConvergeDeps, { resource, signal }: Pass) {
  const { uid } = resource.metadata;
  const facts = await clients.registers.find(uid, signal);
  const now = nowMs();
  const refused = memory.find(uid, facts, now);
  const plan = planRegister({ register: resource, ...surroundings(), facts, refused, nowMs: now });
  return { plan, facts };
}

function nextLookMs({ judgement, steps }: RegisterPlan, facts: RegisterFacts | undefined): number {
  const { state, reason } = judgement.outcome;
  if (steps.length > 0) return CONTESTED_MS;
  if (state === 'stalled' && facts === undefined) return REFUSED_RETRY_MS;
  const isUnderWay = reason === 'GenesisPending' || reason === 'PolicyPending' || reason === 'Progressing';
  const isSoon = facts?.phase === 'GenesisSubmitted' || (facts?.outstanding.length ?? 0) > 0;
  return isUnderWay && isSoon ? BUSY_MS : RESYNC_MS;
}

interface Attempt {
  readonly step: RegisterStep;
  readonly facts: RegisterFacts | undefined;
}

/** What ends this pass; undefined when it goes on. */
async function attempt(
  deps: ConvergeDeps,
  pass: Pass,
  { step, facts }: Attempt,
): Promise<Partial<Verdict> | undefined> {
  pass.log.info({ action: step.act }, step.says);
  if (step.act === 'upsert') return make(deps, pass, step.wish, facts);
  if (step.act === 'change' && facts !== undefined) await change(deps, pass, step, facts);
  if (step.act === 'validation') {
    const { resource, signal } = pass;
    await deps.clients.registers.setValidation(resource.metadata.uid, step.state, signal);
  }
  return undefined;
}

/** Asks for a change; one that the ledger refuses is remembered, and the next plan says so. */
async function change(
  { clients, memory, nowMs }: ConvergeDeps,
  { resource, signal }: Pass,
  step: Extract<RegisterStep, { readonly act: 'change' }>,
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
    memory.keep(uid, { ...step, facts }, { message, nowMs: nowMs() });
  }
}

/** As create; who cannot be made shows as Failed. */
async function make(
  deps: ConvergeDeps,
  pass: Pass,
  wish: RegisterWish,
  facts: RegisterFacts | undefined,
): Promise<Partial<Verdict> | undefined> {
  const end = await create(deps, pass, wish);
  if (end?.outcome?.state !== 'stalled') return end;
  const status = facts === undefined ? {} : registerStatus(facts);
  return { ...end, status: { ...status, phase: 'Failed' } };
}

/** Makes or adopts the register; a refusal that the next look cannot change ends the pass. */
async function create(
  deps: ConvergeDeps,
  pass: Pass,
  wish: RegisterWish,
): Promise<Partial<Verdict> | undefined> {
  const { clients, surroundings } = deps;
  const { signal } = pass;
  const { uid } = pass.resource.metadata;
  try {
    await clients.wallets.ensure(signal);
    await clients.registers.upsert(uid, wish, signal);
    return undefined;
  } catch (error) {
    const former = isRefusal(error, 'REGISTER_BOUND') ? error.members['uid'] : undefined;
    // the resource that stood for it is gone, with its cluster perhaps: this one takes its place
    if (typeof former === 'string' && wish.replaces === undefined && !surroundings().isResourceOf(former)) {
      return create(deps, pass, { ...wish, replaces: former });
    }
    const outcome = outcomeOfCreation(error);
    if (outcome === undefined) throw error;
    const isFinal = outcome.state === 'stalled';
    return {
      outcome,
      requeueAfterMs: isFinal ? REFUSED_RETRY_MS : 5_000,
    };
  }
}
