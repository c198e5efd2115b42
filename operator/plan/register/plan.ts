import { quorum } from '#core/ledger/consensus.ts';
import { annotations } from '../../api/names.ts';
import type { Register, RegisterSpec, RegisterStatus } from '../../api/register.ts';
import { type Disruption, defined, type Judgement, ready, reconciling, stalled } from '../outcome.ts';
import { type AggregateStanding, standings } from './changes.ts';
import type { Aggregate, RegisterChange, RegisterFacts, RegisterWish, RegisterWorld } from './facts.ts';
import { usableMembers } from './membership.ts';
import { conditionUpdates, hasQuorum, isBegun, pendingUpdates, registerStatus, silent } from './status.ts';

/** One call of the register service; every one may be repeated. */
export type RegisterStep = (
  | { readonly act: 'upsert'; readonly wish: RegisterWish }
  | { readonly act: 'change'; readonly aggregate: Aggregate; readonly change: RegisterChange }
  | { readonly act: 'validation'; readonly state: RegisterSpec['validation'] }
  | { readonly act: 'remove'; readonly policy: RegisterSpec['deletionPolicy'] }
) & {
  /** What it does, for people. */
  readonly says: string;
  readonly disrupts: Disruption;
};

export interface RegisterPlan {
  /** In order. After the last one the plan is made anew from what there is then. */
  readonly steps: readonly RegisterStep[];
  /** Of what was seen, before any step. */
  readonly judgement: Judgement<RegisterStatus>;
}

/** So long a new register waits for the last members of its set, before it begins with a quorum of them. */
const PATIENCE_MS = 120_000;

/**
 * What makes a ledger what a Register wants. The resource states intent, the ledger states truth: a change is a
 * control transaction, and the roster may refuse it.
 */
export function planRegister(world: RegisterWorld): RegisterPlan {
  const { register, facts } = world;
  if (facts === undefined) {
    const { registerId } = register.status;
    return registerId === undefined ? planBeginning(world) : lost(registerId);
  }
  const unfit = whyUnfit(facts);
  if (unfit !== undefined) return standStill(facts, unfit);
  if (facts.phase === 'Pending') return planBeginning(world);
  if (facts.phase === 'AwaitingAttestations') return planAttestations(world, facts);
  return planLedger(world, facts);
}

function lost(registerId: string): RegisterPlan {
  // a second one in the place of one that was lost would hide the loss
  const text = `Register ${registerId} is gone from the register service; restore its database, or delete this object and make another Register`;
  const outcome = stalled('InvalidReference', text);
  return { steps: [], judgement: { outcome, conditionUpdates: [], status: { registerId, phase: 'Failed' } } };
}

function whyUnfit({ registerId, deletion }: RegisterFacts): string | undefined {
  if (deletion === undefined) return undefined;
  return `Register ${registerId} was deleted (${deletion.policy}) and does not come back; delete this object as well`;
}

function standStill(facts: RegisterFacts, text: string): RegisterPlan {
  const outcome = stalled('InvalidReference', text);
  return { steps: [], judgement: { outcome, conditionUpdates: [], status: registerStatus(facts) } };
}

/** What a new register waits for; undefined when it can begin. */
function whatIsMissing({ register, tenant, validatorSet, nowMs }: RegisterWorld) {
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
  const isImpatient = nowMs - createdMs >= PATIENCE_MS && usable >= quorum(replicas);
  if (isImpatient) return undefined;
  const text = `${usable} of ${replicas} validators of ${validatorSetRef.name} have a key and run`;
  return reconciling('DependencyNotReady', text);
}

function planBeginning(world: RegisterWorld): RegisterPlan {
  const { facts } = world;
  const missing = whatIsMissing(world);
  const status: RegisterStatus = facts === undefined ? { phase: 'Pending' } : registerStatus(facts);
  if (missing !== undefined) {
    return {
      steps: [],
      judgement: { outcome: missing, conditionUpdates: pendingUpdates(missing.message), status },
    };
  }
  const step = begin(world);
  const outcome = reconciling('GenesisPending', step.says);
  return { steps: [step], judgement: { outcome, conditionUpdates: pendingUpdates(step.says), status } };
}

function begin(world: RegisterWorld): RegisterStep {
  const { spec } = world.register;
  const wish = wishOf(world);
  const size = wish.validators.length;
  const says =
    spec.registerId === undefined || spec.purpose === 'System'
      ? `Make register ${spec.title} with ${size} validators, quorum ${quorum(size, spec.policy?.consensus?.signatureThresholdMin)}`
      : `Adopt register ${spec.registerId}`;
  return { act: 'upsert', wish, says, disrupts: 'none' };
}

function wishOf({ register, tenant, validatorSet }: RegisterWorld): RegisterWish {
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
function planAttestations(world: RegisterWorld, facts: RegisterFacts): RegisterPlan {
  const { register, nowMs } = world;
  const owners = facts.pendingAttestations.filter(({ role }) => role === 'Owner');
  const isExpired = owners.some(({ expiresAt }) => Date.parse(expiresAt ?? '') <= nowMs);
  const isRevised = register.status.observedGeneration !== register.metadata.generation;
  const status = registerStatus(facts);
  if (owners.length === 0 || isExpired || isRevised) return planBeginning(world);
  const names = owners.map(({ walletAddress }) => walletAddress).join(', ');
  const text = `Waits for the signature of ${names}: sign status.pendingAttestations and POST it to /api/registers/${facts.registerId}/attestations`;
  const outcome = reconciling('GenesisPending', text);
  return { steps: [], judgement: { outcome, conditionUpdates: pendingUpdates(text), status } };
}

/** The register has a genesis transaction at least. */
function planLedger(world: RegisterWorld, facts: RegisterFacts): RegisterPlan {
  // before docket 0 and after a halt nothing can be changed
  const canChange = isBegun(facts) && facts.phase !== 'Halted';
  const standing = isBegun(facts) ? standings(world, facts) : [];
  const steps: readonly RegisterStep[] = canChange
    ? [...validationSteps(world, facts), ...changeSteps(standing)]
    : [];
  const judgement = {
    outcome: outcomeOf(world, facts, { standing, steps }),
    conditionUpdates: conditionUpdates(facts, standing),
    status: registerStatus(facts),
  };
  return { steps, judgement };
}

function changeSteps(standing: readonly AggregateStanding[]): readonly RegisterStep[] {
  return standing.flatMap(({ aggregate, change, differs = '', disrupts }) =>
    change === undefined ? [] : [{ act: 'change', aggregate, change, says: differs, disrupts }],
  );
}

function validationSteps(
  { register }: RegisterWorld,
  { validation }: RegisterFacts,
): readonly RegisterStep[] {
  const { validation: state } = register.spec;
  const found = validation === 'WaitingForValidators' ? 'Running' : validation;
  if (found === undefined || found === 'Halted' || found === state) return [];
  const says = `Validation: ${found} -> ${state}`;
  return [{ act: 'validation', state, says, disrupts: state === 'Running' ? 'none' : 'sealing-stops' }];
}

interface Doing {
  readonly standing: readonly AggregateStanding[];
  readonly steps: readonly RegisterStep[];
}

/** The first thing that keeps a register from being as wanted. */
function outcomeOf(world: RegisterWorld, facts: RegisterFacts, { standing, steps }: Doing) {
  if (facts.phase === 'Halted') {
    return stalled(
      'QuorumAtRisk',
      `The register is halted: ${facts.haltedReason ?? 'two certificates for one docket'}`,
    );
  }
  const { operational, size, quorum: needed } = facts.validators;
  const isStopped = world.register.spec.validation !== 'Running' && facts.validation !== 'Running';
  if (!hasQuorum(facts) && !isStopped) {
    const text = `${operational} of ${size} validators answer and ${needed} must agree. Silent: ${silent(facts)}`;
    return reconciling('QuorumLost', text);
  }
  if (!isBegun(facts)) return reconciling('GenesisPending', 'The genesis transaction waits to be sealed');
  const [first] = steps;
  if (first !== undefined) return reconciling('Progressing', first.says);
  return whatDiffers(standing) ?? whatIsUnsettled(world, facts) ?? settled(world);
}

function whatDiffers(standing: readonly AggregateStanding[]) {
  const waiting = standing.find(({ differs, isStuck }) => differs !== undefined && !isStuck);
  if (waiting !== undefined) {
    return reconciling('PolicyPending', `${waiting.differs}: ${waiting.waits}`);
  }
  const stuck = standing.filter(({ isStuck }) => isStuck);
  if (stuck.length === 0) return undefined;
  const texts = stuck.map(({ differs = '', waits }) =>
    waits === differs ? differs : `${differs}: ${waits}`,
  );
  const isRollout = stuck.some(({ aggregate }) => aggregate === 'validators');
  return stalled(isRollout ? 'RolloutBlocked' : 'PolicyRejected', texts.join('; '));
}

function whatIsUnsettled({ register, tenant, validatorSet }: RegisterWorld, facts: RegisterFacts) {
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

function settled({ register }: RegisterWorld) {
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
  const says = {
    Retain: `Keep register ${registerId}, without an object that stands for it`,
    Tombstone: `Take register ${registerId} out of every list; its data stays for 7 days`,
    Purge: `Delete register ${registerId}; its data goes after 24 hours`,
  };
  const disrupts = { Retain: 'none', Tombstone: 'sealing-stops', Purge: 'data-goes' } as const;
  return { steps: [{ act: 'remove', policy, says: says[policy], disrupts: disrupts[policy] }] };
}
