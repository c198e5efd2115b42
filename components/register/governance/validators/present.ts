import type { z } from 'zod';
import { quorum } from '#core/ledger/consensus.ts';
import {
  activeMembers,
  type LedgerRules,
  type LedgerValidator,
  type ValidatorStatus,
} from '#core/ledger/governance/rules.ts';
import type { ReadonlyDeep } from '#kit/http/http.ts';
import { didOf } from '../liveness/present.ts';
import { presentTime } from '../proposals/present.ts';
import type { approvedSchema, validatorSchema, wireStatuses } from './schemas.ts';

const statuses = {
  Pending: 'pending',
  Active: 'active',
  Suspended: 'suspended',
  Removed: 'removed',
} as const satisfies Readonly<Record<ValidatorStatus, (typeof wireStatuses)[number]>>;

/** A validator of the ledger's list, in any status. Statuses are lower case on the wire. */
export function presentValidator(validator: LedgerValidator): z.output<typeof validatorSchema> {
  return {
    validatorId: validator.validatorId,
    did: didOf(validator),
    publicKey: validator.publicKey,
    algorithm: validator.algorithm,
    status: statuses[validator.status],
    registeredAt: presentTime(validator.registeredAt),
    ...(validator.approvedAt !== undefined && { approvedAt: presentTime(validator.approvedAt) }),
    ...(validator.approvedBy !== undefined && { approvedBy: validator.approvedBy }),
    effectiveFromDocket: validator.effectiveFromDocket,
    ...(validator.ejectAt !== undefined && { ejectAt: presentTime(validator.ejectAt) }),
  };
}

/** Approved validators, by the roster or because the register is public. */
export function presentApproved(rules: LedgerRules): ReadonlyDeep<z.output<typeof approvedSchema>> {
  const { registrationMode } = rules.policy.validators;
  const approved = rules.validators.filter(
    ({ status, approvedAt }) => status === 'Active' || (status === 'Suspended' && approvedAt !== undefined),
  );
  const validators = approved.map((each) => ({
    ...presentValidator(each),
    approvedAt: presentTime(each.approvedAt ?? each.registeredAt),
  }));
  const size = activeMembers(rules).length;
  return {
    registerId: rules.registerId,
    registrationMode,
    validators,
    count: validators.length,
    validatorSetVersion: rules.validatorSetVersion,
    quorum: quorum(size, rules.policy.consensus.signatureThresholdMin),
  };
}
