import type { Outcome } from '../api/conditions.ts';
import { validatorSetNames } from '../api/names.ts';
import type { Register } from '../api/register.ts';
import type { Tenant } from '../api/tenant.ts';
import type { ValidatorSet } from '../api/validator-set.ts';
import { applyChange } from '../plan/register/apply-change.ts';
import type { RegisterFacts, RegisterPlanInput } from '../plan/register/facts.ts';
import { planRegister, type RegisterStep } from '../plan/register/plan.ts';
import { planTenant } from '../plan/tenant/plan.ts';
import { asReady, asRunning, organizationOf, registerOf } from './assumed.ts';
import type { Entry, Step } from './entry.ts';
import { counterpart, keyOf, type Objects } from './objects.ts';
import { planSet } from './plan-sets.ts';

/** More changes than a register of 100 validators needs to replace them all. */
const maxChanges = 400;

/**
 * The steps that applying a file causes, in the operator's order. No service is called: the state is taken from live
 * objects, and started pods are assumed to work.
 */
export function planObjects(desired: Objects, live: Objects, nowMs: number): readonly Entry[] {
  const all = merged(desired, live);
  return [
    ...desired.tenants.map((each) => planOneTenant(each, counterpart(each, live.tenants))),
    ...desired.validatorSets.map((each) => planOneSet(each, counterpart(each, live.validatorSets), nowMs)),
    ...desired.registers.map((each) => planOneRegister(each, { all, live, nowMs })),
    ...wokenRegisters(desired, live).map((each) => planOneRegister(each, { all, live, nowMs })),
  ];
}

/** Live registers that are not in the file but refer to a set in it. */
function wokenRegisters(desired: Objects, live: Objects): readonly Register[] {
  return live.registers.filter((each) => {
    const isInFile = counterpart(each, desired.registers) !== undefined;
    const { namespace } = each.metadata;
    const { name } = each.spec.validatorSetRef;
    const set = { kind: 'ValidatorSet', metadata: { namespace, name } };
    return !isInFile && counterpart(set, desired.validatorSets) !== undefined;
  });
}

/** All objects after the file is applied. */
function merged(desired: Objects, live: Objects): Objects {
  const join = <T extends Tenant | ValidatorSet | Register>(desired: readonly T[], there: readonly T[]) => [
    ...desired,
    ...there.filter((each) => counterpart(each, desired) === undefined),
  ];
  return {
    tenants: join(desired.tenants, live.tenants),
    validatorSets: join(desired.validatorSets, live.validatorSets),
    registers: join(desired.registers, live.registers),
  };
}

function planOneTenant(desired: Tenant, live: Tenant | undefined): Entry {
  const tenant = live === undefined ? desired : { ...desired, status: live.status };
  const { steps, judgement } = planTenant(tenant, organizationOf(live));
  return { kind: 'Tenant', key: keyOf(desired), steps, notes: [], ...refusalOf(judgement.outcome) };
}

function planOneSet(desired: ValidatorSet, live: ValidatorSet | undefined, nowMs: number): Entry {
  validatorSetNames(desired.metadata.name);
  return planSet(desired, live, nowMs);
}

function refusalOf({ state, message }: Outcome): { readonly refused?: string } {
  return state === 'stalled' ? { refused: message } : {};
}

interface Around {
  /** Objects after the file is applied. */
  readonly all: Objects;
  readonly live: Objects;
  readonly nowMs: number;
}

function planOneRegister(desired: Register, { all, live, nowMs }: Around): Entry {
  const before = counterpart(desired, live.registers);
  const { namespace } = desired.metadata;
  const refer = <T extends Tenant | ValidatorSet>(list: readonly T[], name: string | undefined) =>
    name === undefined ? undefined : counterpart({ kind: '', metadata: { namespace, name } }, list);
  const tenant = refer(all.tenants, desired.spec.tenantRef?.name);
  const set = refer(all.validatorSets, desired.spec.validatorSetRef.name);
  const { metadata, status } = before ?? desired;
  const input = {
    register: { ...desired, metadata, status: { ...status, observedGeneration: metadata.generation } },
    tenant: tenant === undefined ? undefined : asReady(tenant),
    validatorSet: set === undefined ? undefined : asRunning(set),
    setNames: all.validatorSets
      .filter((each) => each.metadata.namespace === namespace)
      .map((each) => each.metadata.name),
    refused: new Map(),
    nowMs,
  };
  const walked = scaling(input, registerOf(before, live.validatorSets));
  return { kind: 'Register', key: keyOf(desired), ...walked };
}

/** Assumes every step as done and plans again until no step is left. */
function scaling(input: Omit<RegisterPlanInput, 'facts'>, found: RegisterFacts | undefined) {
  const steps: Step[] = [];
  let facts = found;
  for (let count = 0; count < maxChanges; count += 1) {
    const plan = planRegister({ ...input, facts });
    const refusal = refusalOf(plan.judgement.outcome);
    if (plan.steps.length === 0) return { steps, notes: notesOf(found, facts), ...refusal };
    steps.push(...plan.steps);
    if (facts === undefined || plan.steps.some(({ action }) => action === 'upsert')) break;
    facts = plan.steps.reduce(after, facts);
  }
  return { steps, notes: notesOf(found, facts) };
}

function after(facts: RegisterFacts, step: RegisterStep): RegisterFacts {
  if (step.action === 'change') return applyChange(facts, step.change);
  return step.action === 'validation' ? { ...facts, validation: step.state } : facts;
}

function notesOf(before: RegisterFacts | undefined, facts: RegisterFacts | undefined): readonly string[] {
  if (before === undefined || facts === undefined) return [];
  const arithmetic = ({ validators }: RegisterFacts) =>
    `${validators.size} validators: quorum ${validators.quorum}, tolerates ${validators.faultTolerance}`;
  const isSame = arithmetic(before) === arithmetic(facts);
  const votes =
    before.operatorRole === 'Owner' && before.roster.length > 0
      ? ['The roster may have other members: changes that the owner cannot decide alone wait for their votes']
      : [];
  return [...(isSame ? [] : [`${arithmetic(before)} -> ${arithmetic(facts)}`]), ...votes];
}
