import { describe, expect, test } from 'vitest';
import { ADMIN, setOf } from '../testing/objects.ts';
import { type Case, checkPlan, members, planInput } from '../testing/register-input.ts';
import { validatorNumbers } from './apply-change.ts';
import { changeKey } from './changes.ts';
import { planRegister } from './plan.ts';

describe('a running register', () => {
  const cases: readonly Case[] = [
    { name: 'matches the spec', facts: {}, outcome: ['ready', 'Reconciled'], phase: 'Online' },
    {
      name: 'waits for docket 0',
      facts: { phase: 'GenesisSubmitted', height: 0 },
      spec: { title: 'Another title' },
      outcome: ['reconciling', 'GenesisPending', 'genesis transaction'],
      phase: 'GenesisSubmitted',
    },
    {
      name: 'fetches missing dockets',
      facts: { phase: 'Recovering' },
      outcome: ['reconciling', 'Progressing', 'recovering'],
    },
    {
      name: 'gets a new title',
      facts: {},
      spec: { title: 'Bills', metadata: { kind: 'bill' } },
      steps: ['Change title, metadata.kind'],
      outcome: ['reconciling', 'Progressing'],
    },
    {
      name: 'keeps a description that the spec does not set',
      facts: { description: 'theirs' },
      outcome: ['ready', 'Reconciled'],
    },
    {
      name: 'gets a policy change with the differences only',
      facts: {},
      spec: {
        policy: {
          governance: { quorumFormula: 'StrictMajority' },
          consensus: { docketBuildIntervalMs: 500 },
        },
      },
      steps: ['Change the policy: consensus.docketBuildIntervalMs 1000 -> 500'],
      outcome: ['reconciling', 'Progressing'],
    },
    {
      name: 'waits for the transaction that changes the policy',
      facts: { outstanding: [{ aggregate: 'policy', txId: 'ff' }] },
      spec: { policy: { consensus: { docketBuildIntervalMs: 500 } } },
      outcome: ['reconciling', 'PolicyPending', 'Transaction ff waits to be sealed'],
    },
    {
      name: 'waits for the votes on its proposal',
      facts: {
        proposals: [
          {
            proposalId: 'p1',
            operationType: 'policy-update',
            votesReceived: 1,
            votesRequired: 2,
            votedByOperator: true,
          },
        ],
      },
      spec: { policy: { consensus: { docketBuildIntervalMs: 500 } } },
      outcome: ['reconciling', 'PolicyPending', 'Proposal p1 awaits its quorum: 1 of 2 votes'],
    },
    {
      name: 'changes the title during a vote about the policy',
      facts: { outstanding: [{ aggregate: 'policy', txId: 'ff' }] },
      spec: { title: 'Bills', policy: { consensus: { docketBuildIntervalMs: 500 } } },
      steps: ['Change title'],
      outcome: ['reconciling', 'Progressing'],
    },
    {
      name: 'leaves development mode',
      facts: { devMode: true },
      steps: ['Switch development mode off'],
      outcome: ['reconciling', 'Progressing'],
    },
    {
      name: 'cannot return to development mode',
      facts: {},
      spec: { devMode: true },
      outcome: ['stalled', 'PolicyRejected', 'write devMode: false'],
    },
    {
      name: 'pauses',
      facts: {},
      spec: { validation: 'Paused' },
      steps: ['Validation: Running -> Paused'],
      outcome: ['reconciling', 'Progressing'],
    },
    {
      name: 'is paused as the spec requests',
      facts: { validation: 'Paused' },
      spec: { validation: 'Paused' },
      outcome: ['ready', 'Suspended', 'validation is paused'],
    },
    {
      name: 'keeps the validation state while it is unknown',
      facts: { validation: undefined },
      spec: { validation: 'Paused' },
      outcome: ['ready', 'Suspended'],
    },
    {
      name: 'lost its quorum',
      facts: { validators: validatorNumbers(members(4, 2)) },
      outcome: ['reconciling', 'QuorumLost', '2 of 4 validators answer and 3 must agree'],
    },
    {
      name: 'is not changed while it is halted',
      facts: { phase: 'Halted', haltedReason: 'two certificates for docket 4' },
      spec: { title: 'Bills' },
      outcome: ['stalled', 'QuorumAtRisk', 'two certificates for docket 4'],
    },
    {
      name: 'was deleted through the API',
      facts: { phase: 'Deleting', deletion: { policy: 'Purge' } },
      outcome: ['stalled', 'InvalidReference', 'was deleted (Purge)'],
    },
    {
      name: 'refers to a deleted set',
      facts: {},
      validatorSet: undefined,
      outcome: ['stalled', 'InvalidReference', 'ValidatorSet main'],
    },
    {
      name: 'refers to a deleted tenant',
      facts: {},
      tenant: undefined,
      outcome: ['stalled', 'InvalidReference', 'Tenant acme'],
    },
    {
      name: 'grows with its set',
      facts: {},
      validatorSet: setOf(5),
      steps: ['Add validator-main-4: 4 -> 5 validators, quorum 3 -> 4'],
      outcome: ['reconciling', 'Progressing'],
    },
    {
      name: 'cannot shrink below its policy',
      facts: { policy: { validators: { minValidators: 4 } } },
      validatorSet: setOf(3),
      outcome: ['stalled', 'RolloutBlocked', 'validators.minValidators of the policy is 4'],
    },
    {
      name: 'adds an admin who had not signed',
      facts: {},
      spec: { admins: [{ walletAddress: ADMIN }] },
      steps: [`Add ${ADMIN} to the roster as Admin`],
      outcome: ['reconciling', 'Progressing'],
    },
    {
      name: 'does not add an admin whom the roster removed',
      facts: {},
      spec: { admins: [{ walletAddress: ADMIN }] },
      status: {
        conditions: [
          {
            type: 'AttestationsComplete',
            status: 'True',
            reason: 'Reconciled',
            message: '',
            lastTransitionTime: '2026-01-01T00:00:00Z',
          },
        ],
      },
      outcome: ['ready', 'Reconciled'],
    },
  ];
  test.each(cases)('$name', (one) => void checkPlan(one));

  test('sends the transition mode when a policy ends public registration', () => {
    const spec = { policy: { validators: { registrationMode: 'Consent' } }, transitionMode: 'GracePeriod' };
    const { steps } = planRegister(planInput({ facts: {}, spec }));
    expect(steps).toMatchObject([{ change: { change: 'policy', transitionMode: 'grace-period' } }]);
  });

  test('does not request a refused change again', () => {
    const spec = { policy: { consensus: { docketBuildIntervalMs: 500 } } };
    const [step] = planRegister(planInput({ facts: {}, spec })).steps;
    if (step?.action !== 'change') throw new Error('no change');
    const refused = new Map([
      ['policy', { key: changeKey(step.change), message: 'VAL_POLICY_002: no' }],
    ] as const);
    const plan = checkPlan({
      name: '',
      facts: {},
      spec,
      refused,
      outcome: ['stalled', 'PolicyRejected', 'VAL_POLICY_002: no'],
    });
    expect(plan.judgement.conditionUpdates).toContainEqual(
      expect.objectContaining({ type: 'PolicyInSync', status: 'False', reason: 'PolicyRejected' }),
    );
    const other = { policy: { consensus: { docketBuildIntervalMs: 600 } } };
    expect(planRegister(planInput({ facts: {}, spec: other, refused })).steps).toHaveLength(1);
  });

  test('has conditions for its state', () => {
    const { judgement } = planRegister(planInput({ facts: { validators: validatorNumbers(members(4, 1)) } }));
    const conditions = Object.fromEntries(
      judgement.conditionUpdates.map((each) => [each.type, `${each.status}/${each.reason}`]),
    );
    expect(conditions).toEqual({
      AttestationsComplete: 'True/Reconciled',
      GenesisSealed: 'True/Reconciled',
      QuorumAvailable: 'True/Reconciled',
      Synced: 'True/Reconciled',
      PolicyInSync: 'True/Reconciled',
      DevModeInSync: 'True/Reconciled',
      Degraded: 'True/QuorumAtRisk',
      Halted: 'False/Reconciled',
    });
    expect(judgement.status.validators).toEqual({
      size: 4,
      quorum: 3,
      faultTolerance: 1,
      operational: 3,
      summary: '3/4',
    });
  });
});
