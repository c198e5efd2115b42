import { expect } from 'vitest';
import { validatorNumbers } from '../register/apply-change.ts';
import type { RegisterFacts, RegisterPlanInput, ValidatorFacts } from '../register/facts.ts';
import { planRegister } from '../register/plan.ts';
import { NOW_MS, ORGANIZATION_ID, OWNER, REGISTER_ID, readyTenant, registerOf, setOf } from './objects.ts';

type Members = Readonly<Record<string, unknown>>;

/** Validators of the set main, of which the first `silent` ones do not answer. */
export function members(count: number, silent = 0): readonly ValidatorFacts[] {
  return Array.from({ length: count }, (_, at) => ({
    validatorId: `validator-main-${at}`,
    status: 'Active',
    operational: at >= silent,
  }));
}

/** A register of four validators that matches registerOf. */
export const online: RegisterFacts = {
  registerId: REGISTER_ID,
  phase: 'Online',
  organizationId: ORGANIZATION_ID,
  title: 'Invoices',
  devMode: false,
  metadata: {},
  genesisTransactionId: 'ab'.repeat(32),
  genesisHash: 'cd'.repeat(32),
  height: 5,
  headHash: 'ef'.repeat(32),
  pendingAttestations: [],
  roster: [{ walletAddress: OWNER, role: 'Owner' }],
  operatorRole: 'Owner',
  policyVersion: 1,
  policy: {
    governance: { quorumFormula: 'strict-majority' },
    validators: { registrationMode: 'public', minValidators: 1, maxValidators: 100 },
    consensus: { signatureThresholdMin: 1, docketBuildIntervalMs: 1000 },
  },
  proposals: [],
  outstanding: [],
  validators: validatorNumbers(members(4)),
  validation: 'Running',
  sync: { status: 'Synced', currentDocket: 4, targetDocket: 4, progressPercent: 100, isStale: false },
  pendingTransactions: 0,
  isReplicatedElsewhere: false,
};

export interface PlanInputOptions extends Partial<Omit<RegisterPlanInput, 'register' | 'facts'>> {
  readonly spec?: Members;
  readonly status?: Members;
  readonly metadata?: Members;
  readonly facts?: Partial<RegisterFacts> | undefined;
}

/** Input of a plan; without `facts` the register does not exist. */
export function planInput({
  spec,
  status = {},
  metadata = {},
  facts,
  ...rest
}: PlanInputOptions = {}): RegisterPlanInput {
  return {
    register: registerOf(spec, { status, metadata }),
    tenant: readyTenant(),
    validatorSet: setOf(4),
    setNames: ['main'],
    facts: facts === undefined ? undefined : { ...online, ...facts },
    refused: new Map(),
    nowMs: NOW_MS,
    ...rest,
  };
}

/** Input of a plan and the expected result. */
export interface Case extends PlanInputOptions {
  readonly name: string;
  readonly steps?: readonly string[];
  readonly outcome: readonly [state: string, reason: string, message?: string];
  readonly phase?: string;
}

/** Plans and compares; steps and messages are compared by a part of their text. */
export function checkPlan({ name: _, steps = [], outcome, phase, ...options }: Case) {
  const plan = planRegister(planInput(options));
  const [state, reason, message = ''] = outcome;
  expect(plan.steps.map((step) => step.summary)).toEqual(steps.map((each) => expect.stringContaining(each)));
  expect(plan.judgement.outcome).toMatchObject({ state, reason, message: expect.stringContaining(message) });
  if (phase !== undefined) expect(plan.judgement.status.phase).toBe(phase);
  return plan;
}
