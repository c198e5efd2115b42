import { faultTolerance, quorum } from '#core/ledger/consensus.ts';
import { isRecord } from '../../kube/resource.ts';
import type { Json, RegisterChange, RegisterFacts, ValidatorFacts } from './facts.ts';
import { policyNumber } from './policy.ts';

/** Size, quorum and fault tolerance of the validators of a register. */
export function validatorNumbers(
  members: readonly ValidatorFacts[],
  threshold = 1,
): RegisterFacts['validators'] {
  const active = members.filter(({ status }) => status === 'Active');
  const size = active.length;
  const operational = active.filter((each) => each.operational).length;
  return {
    members,
    size,
    quorum: size === 0 ? 0 : quorum(size, threshold),
    faultTolerance: faultTolerance(size),
    operational,
  };
}

/** A policy after a patch: members of the patch replace those of the policy. */
export function mergePatch(policy: Json, patch: Json): Json {
  const all = new Map(Object.entries(policy));
  for (const [name, value] of Object.entries(patch)) {
    const before = all.get(name);
    all.set(name, isRecord(value) ? mergePatch(isRecord(before) ? before : {}, value) : value);
  }
  return Object.fromEntries(all);
}

function withMembers(facts: RegisterFacts, members: readonly ValidatorFacts[]): RegisterFacts {
  const threshold = policyNumber(facts.policy, 'consensus.signatureThresholdMin', 1);
  return { ...facts, validators: validatorNumbers(members, threshold) };
}

/** The facts of a register after a change took effect. */
export function applyChange(facts: RegisterFacts, change: RegisterChange): RegisterFacts {
  const { members } = facts.validators;
  switch (change.change) {
    case 'metadata': {
      const { title = facts.title, description = facts.description, metadata = facts.metadata } = change;
      return { ...facts, title, description, metadata };
    }
    case 'policy': {
      const policy = mergePatch(facts.policy, change.policy);
      return { ...facts, policy, policyVersion: facts.policyVersion + 1 };
    }
    case 'devModeOff':
      return { ...facts, devMode: false };
    case 'addValidator': {
      const { validatorId } = change;
      return withMembers(facts, [...members, { validatorId, status: 'Active', operational: true }]);
    }
    case 'removeValidator':
      return withMembers(
        facts,
        members.filter(({ validatorId }) => validatorId !== change.validatorId),
      );
    case 'addMember': {
      const { walletAddress, role } = change;
      return { ...facts, roster: [...facts.roster, { walletAddress, role }] };
    }
  }
}
