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

/** One call of the register service; calls are idempotent. */
export type RegisterStep = (
  | { readonly action: 'upsert'; readonly desired: DesiredRegister }
  | { readonly action: 'change'; readonly aggregate: Aggregate; readonly change: RegisterChange }
  | { readonly action: 'validation'; readonly state: RegisterSpec['validation'] }
  | { readonly action: 'remove'; readonly policy: RegisterSpec['deletionPolicy'] }
) & {
  /** Description for people. */
  readonly summary: string;
  readonly disruption: Disruption;
};

export interface RegisterPlan {
  /** In order. After the last step a new plan is made from the new state. */
  readonly steps: readonly RegisterStep[];
  /** Judgement of the observed state, before any step. */
  readonly judgement: Judgement<RegisterStatus>;
}

/** How long a new register waits for all members of its set before it starts with a quorum of them. */
const memberWaitMs = 120_000;

/**
 * Plans the steps from a register to the desired state of its resource. The resource states intent, the ledger states
 * truth: a change is a control transaction, which the roster may refuse.
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
  // a new register in place of a lost one would hide the loss
  const text = `Register ${registerId} does not exist in the register service any more; restore its database, or delete this object and create another Register`;
  const outcome = stalled('InvalidReference', text);
  return { steps: [], judgement: { outcome, conditionUpdates: [], status: { registerId, phase: 'Failed' } } };
}

function deletedMessage({ registerId, deletion }: RegisterFacts): string | undefined {
  if (deletion === undefined) return undefined;
  return `Register ${registerId} was deleted (${deletion.policy}) and cannot be restored; delete this object too`;
}

function stalledPlan(facts: RegisterFacts, text: string): RegisterPlan {
  const outcome = stalled('InvalidReference', text);
  return { steps: [], judgement: { outcome, conditionUpdates: [], status: registerStatus(facts) } };
}

/** The dependency that a new register waits for; undefined when it can start. */
function missingDependency({ register, tenant, validatorSet, nowMs }: RegisterPlanInput) {
  const { tenantRef, validatorSetRef } = register.spec;
  if (tenantRef !== undefined) {
    if (tenant === undefined) {
      return stalled(
        'InvalidReference',
        `Tenant ${tenantRef.name} of spec.tenantRef does not exist; create it`,
      );
    }
    if (tenant.status.organizationId === undefined || tenant.status.state === 'Terminating') {
      return reconciling('DependencyNotReady', `Tenant ${tenantRef.name} has no organisation yet`);
    }
  }
  if (validatorSet === undefined) {
    const text = `ValidatorSet ${validatorSetRef.name} of spec.validatorSetRef does not exist; create it`;
    return stalled('InvalidReference', text);
  }
  // an adopted register has its validators; a System register is created under the stated id
  if (register.spec.registerId !== undefined && register.spec.purpose !== 'System') return undefined;
  const { replicas } = validatorSet.spec;
  const usable = usableMembers(validatorSet).length;
  if (usable >= replicas) return undefined;
  const createdMs = Date.parse(register.metadata.creationTimestamp ?? '');
  const mayStartWithQuorum = nowMs - createdMs >= memberWaitMs && usable >= quorum(replicas);
  if (mayStartWithQuorum) return undefined;
  const text = `${usable} of ${replicas} validators of ${validatorSetRef.name} are running and have a key`;
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
      ? `Create register ${spec.title} with ${size} validators, quorum ${quorum(size, spec.policy?.consensus?.signatureThresholdMin)}`
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

/** Waits for the owners' signatures, and drafts again when the attestation has expired or the spec has changed. */
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

/** Plans a register that has a genesis transaction. */
function planLedger(input: RegisterPlanInput, facts: RegisterFacts): RegisterPlan {
  // changes are impossible before docket 0 and after a halt
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

/** The outcome: the first obstacle to the desired state. */
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
    const text = `ValidatorSet ${validatorSetRef.name} of spec.validatorSetRef does not exist; create it, or name another one`;
    return stalled('InvalidReference', text);
  }
  if (tenantRef !== undefined && tenant === undefined) {
    return stalled(
      'InvalidReference',
      `Tenant ${tenantRef.name} of spec.tenantRef does not exist; create it`,
    );
  }
  if (facts.phase === 'Online') return undefined;
  return reconciling('Progressing', `The register service is ${facts.phase.toLowerCase()}`);
}

function inSyncOutcome({ register }: RegisterPlanInput) {
  const { validation } = register.spec;
  if (validation === 'Running') return ready('The register matches the spec');
  return {
    ...ready(`The register matches the spec; validation is ${validation.toLowerCase()}`),
    reason: 'Suspended' as const,
  };
}

type RegisterRemoval =
  | { readonly steps: readonly RegisterStep[]; readonly blocked?: undefined }
  | { readonly steps: readonly []; readonly blocked: string };

/** Steps for the register of an object that is being deleted; empty when nothing is left to do. */
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
    Retain: `Keep register ${registerId}, without a resource`,
    Tombstone: `Remove register ${registerId} from all lists; its data is kept for 7 days`,
    Purge: `Delete register ${registerId}; its data is deleted after 24 hours`,
  };
  const disruption = { Retain: 'none', Tombstone: 'sealing-stops', Purge: 'data-deleted' } as const;
  return { steps: [{ action: 'remove', policy, summary: summary[policy], disruption: disruption[policy] }] };
}
