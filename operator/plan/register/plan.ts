import { quorum } from '#core/ledger/consensus.ts';
import { annotations } from '../../api/names.ts';
import type { Register, RegisterSpec, RegisterStatus } from '../../api/register.ts';
import { type Disruption, defined, type Judgement, ready, reconciling, stalled } from '../outcome.ts';
import { type AggregateState, aggregateStates } from './changes.ts';
import type {
  Aggregate,
  DesiredRegister,
  RegisterChange,
  RegisterFacts,
  RegisterPlanInput,
} from './facts.ts';
import { usableMembers } from './membership.ts';
import {
  conditionUpdates,
  hasQuorum,
  hasStarted,
  pendingUpdates,
  registerStatus,
  silentValidators,
} from './status.ts';

/** One call of the register service; every one may be repeated. */
export type RegisterStep = (
  | { readonly action: 'upsert'; readonly desired: DesiredRegister }
  | { readonly action: 'change'; readonly aggregate: Aggregate; readonly change: RegisterChange }
  | { readonly action: 'validation'; readonly state: RegisterSpec['validation'] }
  | { readonly action: 'remove'; readonly policy: RegisterSpec['deletionPolicy'] }
) & {
  /** What it does, for people. */
  readonly summary: string;
  readonly disruption: Disruption;
};

export interface RegisterPlan {
  /** In order. After the last one the plan is made anew from what there is then. */
  readonly steps: readonly RegisterStep[];
  /** Of what was seen, before any step. */
  readonly judgement: Judgement<RegisterStatus>;
}

/** So long a new register waits for the last members of its set, before it begins with a quorum of them. */
const MEMBER_WAIT_MS = 120_000;

/**
 * What makes a ledger what a Register wants. The resource states intent, the ledger states truth: a change is a
 * control transaction, and the roster may refuse it.
 */
export function planRegister(input: RegisterPlanInput): RegisterPlan {
  const { register, facts } = input;
  if (facts === undefined) {
    const { registerId } = register.status;
    return registerId === undefined ? planCreation(input) : registerLost(registerId);
  }
  const deleted = deletedMessage(facts);
  if (deleted !== undefined) return stalledPlan(facts, deleted);
  if (facts.phase === 'Pending') return planCreation(input);
  if (facts.phase === 'AwaitingAttestations') return planAttestations(input, facts);
  return planLedger(input, facts);
}

function registerLost(registerId: string): RegisterPlan {
  // a second one in the place of one that was lost would hide the loss
  const text = `Register ${registerId} is gone from the register service; restore its database, or delete this object and make another Register`;
  const outcome = stalled('InvalidReference', text);
  return { steps: [], judgement: { outcome, conditionUpdates: [], status: { registerId, phase: 'Failed' } } };
}

function deletedMessage({ registerId, deletion }: RegisterFacts): string | undefined {
  if (deletion === undefined) return undefined;
  return `Register ${registerId} was deleted (${deletion.policy}) and does not come back; delete this object as well`;
}

function stalledPlan(facts: RegisterFacts, text: string): RegisterPlan {
  const outcome = stalled('InvalidReference', text);
  return { steps: [], judgement: { outcome, conditionUpdates: [], status: registerStatus(facts) } };
}

/** What a new register waits for; undefined when it can begin. */
function missingDependency({ register, tenant, validatorSet, nowMs }: RegisterPlanInput) {
  const { tenantRef, validatorSetRef } = register.spec;
  if (tenantRef !== undefined) {
    if (tenant === undefined) {
      return stalled(
        'InvalidReference',
        `Tenant ${tenantRef.name} of spec.tenantRef does not exist; make it`,
      );
    }
    if (tenant.status.organizationId === undefined || tenant.status.state === 'Terminating') {
      return reconciling('DependencyNotReady', `Tenant ${tenantRef.name} has no organisation yet`);
    }
  }
  if (validatorSet === undefined) {
    const text = `ValidatorSet ${validatorSetRef.name} of spec.validatorSetRef does not exist; make it`;
    return stalled('InvalidReference', text);
  }
  // an adopted register has its validators; a System one may be made under the id that is stated
  if (register.spec.registerId !== undefined && register.spec.purpose !== 'System') return undefined;
  const { replicas } = validatorSet.spec;
  const usable = usableMembers(validatorSet).length;
  if (usable >= replicas) return undefined;
  const createdMs = Date.parse(register.metadata.creationTimestamp ?? '');
  const mayStartWithQuorum = nowMs - createdMs >= MEMBER_WAIT_MS && usable >= quorum(replicas);
  if (mayStartWithQuorum) return undefined;
  const text = `${usable} of ${replicas} validators of ${validatorSetRef.name} have a key and run`;
  return reconciling('DependencyNotReady', text);
}

function planCreation(input: RegisterPlanInput): RegisterPlan {
  const { facts } = input;
  const missing = missingDependency(input);
  const status: RegisterStatus = facts === undefined ? { phase: 'Pending' } : registerStatus(facts);
  if (missing !== undefined) {
    return {
      steps: [],
      judgement: { outcome: missing, conditionUpdates: pendingUpdates(missing.message), status },
    };
  }
  const step = creationStep(input);
  const outcome = reconciling('GenesisPending', step.summary);
  return { steps: [step], judgement: { outcome, conditionUpdates: pendingUpdates(step.summary), status } };
}

function creationStep(input: RegisterPlanInput): RegisterStep {
  const { spec } = input.register;
  const desired = desiredRegister(input);
  const size = desired.validators.length;
  const summary =
    spec.registerId === undefined || spec.purpose === 'System'
      ? `Make register ${spec.title} with ${size} validators, quorum ${quorum(size, spec.policy?.consensus?.signatureThresholdMin)}`
      : `Adopt register ${spec.registerId}`;
  return { action: 'upsert', desired, summary, disruption: 'none' };
}

function desiredRegister({ register, tenant, validatorSet }: RegisterPlanInput): DesiredRegister {
  const { spec } = register;
  const { title, description, purpose, owners, admins, devMode, metadata, policy, registerId } = spec;
  return {
    title,
    purpose,
    owners,
    devMode,
    validators: validatorSet === undefined ? [] : usableMembers(validatorSet),
    ...defined({
      description,
      admins,
      metadata,
      policy,
      registerId,
      organizationId: tenant?.status.organizationId,
    }),
  };
}

/** Owners have not signed, or what they signed has run out or changed. */
function planAttestations(input: RegisterPlanInput, facts: RegisterFacts): RegisterPlan {
  const { register, nowMs } = input;
  const owners = facts.pendingAttestations.filter(({ role }) => role === 'Owner');
  const isExpired = owners.some(({ expiresAt }) => Date.parse(expiresAt ?? '') <= nowMs);
  const isRevised = register.status.observedGeneration !== register.metadata.generation;
  const status = registerStatus(facts);
  if (owners.length === 0 || isExpired || isRevised) return planCreation(input);
  const names = owners.map(({ walletAddress }) => walletAddress).join(', ');
  const text = `Waits for the signature of ${names}: sign status.pendingAttestations and POST it to /api/registers/${facts.registerId}/attestations`;
  const outcome = reconciling('GenesisPending', text);
  return { steps: [], judgement: { outcome, conditionUpdates: pendingUpdates(text), status } };
}

/** The register has a genesis transaction at least. */
function planLedger(input: RegisterPlanInput, facts: RegisterFacts): RegisterPlan {
  // before docket 0 and after a halt nothing can be changed
  const canChange = hasStarted(facts) && facts.phase !== 'Halted';
  const states = hasStarted(facts) ? aggregateStates(input, facts) : [];
  const steps: readonly RegisterStep[] = canChange
    ? [...validationSteps(input, facts), ...changeSteps(states)]
    : [];
  const judgement = {
    outcome: outcomeOf(input, facts, { states, steps }),
    conditionUpdates: conditionUpdates(facts, states),
    status: registerStatus(facts),
  };
  return { steps, judgement };
}

function changeSteps(states: readonly AggregateState[]): readonly RegisterStep[] {
  return states.flatMap(({ aggregate, change, difference = '', disruption }) =>
    change === undefined ? [] : [{ action: 'change', aggregate, change, summary: difference, disruption }],
  );
}

function validationSteps(
  { register }: RegisterPlanInput,
  { validation }: RegisterFacts,
): readonly RegisterStep[] {
  const { validation: state } = register.spec;
  const found = validation === 'WaitingForValidators' ? 'Running' : validation;
  if (found === undefined || found === 'Halted' || found === state) return [];
  const summary = `Validation: ${found} -> ${state}`;
  return [
    { action: 'validation', state, summary, disruption: state === 'Running' ? 'none' : 'sealing-stops' },
  ];
}

interface PlanState {
  readonly states: readonly AggregateState[];
  readonly steps: readonly RegisterStep[];
}

/** The first thing that keeps a register from being as wanted. */
function outcomeOf(input: RegisterPlanInput, facts: RegisterFacts, { states, steps }: PlanState) {
  if (facts.phase === 'Halted') {
    return stalled(
      'QuorumAtRisk',
      `The register is halted: ${facts.haltedReason ?? 'two certificates for one docket'}`,
    );
  }
  const { operational, size, quorum: needed } = facts.validators;
  const isStopped = input.register.spec.validation !== 'Running' && facts.validation !== 'Running';
  if (!hasQuorum(facts) && !isStopped) {
    const text = `${operational} of ${size} validators answer and ${needed} must agree. Silent: ${silentValidators(facts)}`;
    return reconciling('QuorumLost', text);
  }
  if (!hasStarted(facts)) return reconciling('GenesisPending', 'The genesis transaction waits to be sealed');
  const [first] = steps;
  if (first !== undefined) return reconciling('Progressing', first.summary);
  return outcomeOfDifferences(states) ?? unmetDependency(input, facts) ?? inSyncOutcome(input);
}

function outcomeOfDifferences(states: readonly AggregateState[]) {
  const waiting = states.find(({ difference, isStalled }) => difference !== undefined && !isStalled);
  if (waiting !== undefined) {
    return reconciling('PolicyPending', `${waiting.difference}: ${waiting.waitingFor}`);
  }
  const stalledBecause = states.filter(({ isStalled }) => isStalled);
  if (stalledBecause.length === 0) return undefined;
  const texts = stalledBecause.map(({ difference = '', waitingFor }) =>
    waitingFor === difference ? difference : `${difference}: ${waitingFor}`,
  );
  const isRollout = stalledBecause.some(({ aggregate }) => aggregate === 'validators');
  return stalled(isRollout ? 'RolloutBlocked' : 'PolicyRejected', texts.join('; '));
}

function unmetDependency({ register, tenant, validatorSet }: RegisterPlanInput, facts: RegisterFacts) {
  const { tenantRef, validatorSetRef } = register.spec;
  if (validatorSet === undefined) {
    const text = `ValidatorSet ${validatorSetRef.name} of spec.validatorSetRef does not exist; make it, or name another one`;
    return stalled('InvalidReference', text);
  }
  if (tenantRef !== undefined && tenant === undefined) {
    return stalled('InvalidReference', `Tenant ${tenantRef.name} of spec.tenantRef does not exist; make it`);
  }
  if (facts.phase === 'Online') return undefined;
  return reconciling('Progressing', `The register service is ${facts.phase.toLowerCase()}`);
}

function inSyncOutcome({ register }: RegisterPlanInput) {
  const { validation } = register.spec;
  if (validation === 'Running') return ready('The ledger is as wanted');
  return {
    ...ready(`The ledger is as wanted; validation is ${validation.toLowerCase()}`),
    reason: 'Suspended' as const,
  };
}

export type RegisterRemoval =
  | { readonly steps: readonly RegisterStep[]; readonly blocked?: undefined }
  | { readonly steps: readonly []; readonly blocked: string };

/** What happens to the register of an object that is being deleted; no steps: nothing is left to do. */
export function planRegisterRemoval(register: Register, facts: RegisterFacts | undefined): RegisterRemoval {
  if (facts === undefined) return { steps: [] };
  const { registerId, deletion, isReplicatedElsewhere } = facts;
  const { deletionPolicy: policy } = register.spec;
  const isDone = deletion?.policy === policy || deletion?.policy === 'Purge';
  if (policy !== 'Retain' && isDone) return { steps: [] };
  const isConfirmed = register.metadata.annotations[annotations.confirmDelete] === registerId;
  if (policy !== 'Retain' && isReplicatedElsewhere && !isConfirmed) {
    const blocked = `Other installations replicate register ${registerId}; annotate the object with ${annotations.confirmDelete}: ${registerId}`;
    return { steps: [], blocked };
  }
  const summary = {
    Retain: `Keep register ${registerId}, without an object that stands for it`,
    Tombstone: `Take register ${registerId} out of every list; its data stays for 7 days`,
    Purge: `Delete register ${registerId}; its data goes after 24 hours`,
  };
  const disruption = { Retain: 'none', Tombstone: 'sealing-stops', Purge: 'data-goes' } as const;
  return { steps: [{ action: 'remove', policy, summary: summary[policy], disruption: disruption[policy] }] };
}
