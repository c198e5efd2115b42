import { describe, expect, test } from 'vitest';
import { ADMIN, NOW_MS, ORGANIZATION_ID, OWNER, REGISTER_ID, setOf, tenantOf } from '../testing/objects.ts';
import { type Case, checkPlan, planInput } from '../testing/register-input.ts';
import { planRegister } from './plan.ts';

describe('without a register the plan', () => {
  const cases: readonly Case[] = [
    {
      name: 'creates it when all members of the set run',
      steps: ['Create register Invoices with 4 validators, quorum 3'],
      outcome: ['reconciling', 'GenesisPending'],
      phase: 'Pending',
    },
    {
      name: 'names a missing tenant',
      tenant: undefined,
      outcome: ['stalled', 'InvalidReference', 'Tenant acme of spec.tenantRef does not exist'],
    },
    {
      name: 'waits for the organisation of its tenant',
      tenant: tenantOf(),
      outcome: ['reconciling', 'DependencyNotReady', 'Tenant acme has no organisation yet'],
    },
    {
      name: 'names a missing set',
      validatorSet: undefined,
      outcome: ['stalled', 'InvalidReference', 'ValidatorSet main'],
    },
    {
      name: 'waits for the last member of its set',
      validatorSet: setOf(4, { usable: 3 }),
      outcome: ['reconciling', 'DependencyNotReady', '3 of 4 validators of main are running and have a key'],
    },
    {
      name: 'starts with a quorum of its set after two minutes',
      validatorSet: setOf(4, { usable: 3 }),
      nowMs: NOW_MS + 120_000,
      steps: ['Create register Invoices with 3 validators, quorum 3'],
      outcome: ['reconciling', 'GenesisPending'],
    },
    {
      name: 'never starts with less than a quorum',
      validatorSet: setOf(4, { usable: 2 }),
      nowMs: NOW_MS + 3_600_000,
      outcome: ['reconciling', 'DependencyNotReady', '2 of 4'],
    },
    {
      name: 'adopts one without waiting for validators',
      spec: { registerId: REGISTER_ID },
      validatorSet: setOf(4, { usable: 0 }),
      steps: [`Adopt register ${REGISTER_ID}`],
      outcome: ['reconciling', 'GenesisPending'],
    },
    {
      name: 'waits for validators of a System register with an id',
      spec: { registerId: REGISTER_ID, purpose: 'System', tenantRef: undefined },
      validatorSet: setOf(4, { usable: 0 }),
      outcome: ['reconciling', 'DependencyNotReady', '0 of 4'],
    },
    {
      name: 'creates a System register under its id',
      spec: { registerId: REGISTER_ID, purpose: 'System', tenantRef: undefined },
      validatorSet: setOf(4, { usable: 4 }),
      steps: ['Create register Invoices with 4 validators, quorum 3'],
      outcome: ['reconciling', 'GenesisPending'],
    },
    {
      name: 'does not create a lost register again',
      status: { registerId: REGISTER_ID },
      outcome: ['stalled', 'InvalidReference', 'restore its database'],
      phase: 'Failed',
    },
  ];
  test.each(cases)('$name', (one) => void checkPlan(one));

  test('sends the complete desired state to the register service', () => {
    const spec = {
      description: 'All of them',
      admins: [{ walletAddress: ADMIN }],
      devMode: true,
      metadata: { sandbox: 'true' },
      policy: { consensus: { docketBuildIntervalMs: 500 } },
    };
    const { steps } = planRegister(planInput({ spec }));
    expect(steps).toMatchObject([
      {
        action: 'upsert',
        desired: {
          title: 'Invoices',
          description: 'All of them',
          purpose: 'General',
          organizationId: ORGANIZATION_ID,
          owners: [{ operatorWallet: true }],
          admins: [{ walletAddress: ADMIN, role: 'Admin' }],
          devMode: true,
          metadata: { sandbox: 'true' },
          policy: { consensus: { docketBuildIntervalMs: 500 } },
          validators: ['validator-main-0', 'validator-main-1', 'validator-main-2', 'validator-main-3'],
        },
      },
    ]);
  });
});

describe('while signatures are missing the plan', () => {
  const pending = {
    walletAddress: OWNER,
    role: 'Owner',
    dataToSign: '00ff',
    expiresAt: '2026-01-02T00:00:00Z',
  };
  const facts = { phase: 'AwaitingAttestations', pendingAttestations: [pending] } as const;
  const status = { observedGeneration: 1 };
  const cases: readonly Case[] = [
    {
      name: 'waits for the owner and names what to sign',
      facts,
      status,
      outcome: ['reconciling', 'GenesisPending', `Waits for the signature of ${OWNER}`],
      phase: 'AwaitingAttestations',
    },
    {
      name: 'continues when the owner has signed',
      facts: { ...facts, pendingAttestations: [] },
      status,
      steps: ['Create register Invoices'],
      outcome: ['reconciling', 'GenesisPending'],
    },
    {
      name: 'drafts again when the attestation has expired',
      facts,
      status,
      nowMs: NOW_MS + 86_400_000,
      steps: ['Create register Invoices'],
      outcome: ['reconciling', 'GenesisPending'],
    },
    {
      name: 'drafts again when the spec has changed',
      facts,
      status,
      metadata: { generation: 2 },
      steps: ['Create register Invoices'],
      outcome: ['reconciling', 'GenesisPending'],
    },
  ];
  test.each(cases)('$name', (one) => void checkPlan(one));

  test('shows the bytes to sign in base64', () => {
    const { judgement } = planRegister(planInput({ facts, status }));
    expect(judgement.status.pendingAttestations).toEqual([{ ...pending, dataToSign: 'AP8=' }]);
    expect(judgement.conditionUpdates).toContainEqual(
      expect.objectContaining({ type: 'AttestationsComplete', status: 'False', reason: 'GenesisPending' }),
    );
  });
});
