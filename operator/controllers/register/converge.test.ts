import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { goodSpecsOf } from '../../api/testing/arbitraries.ts';
import { validatorNumbers } from '../../plan/register/apply-change.ts';
import { NOW_MS, OWNER, readyTenant, registerOf, setOf, UIDS } from '../../plan/testing/objects.ts';
import type { Registers } from '../../platform/registers.ts';
import { type FakeRegisters, fakeRegisters } from '../../platform/testing/fake-registers.ts';
import { type Interruption, interrupted } from '../../platform/testing/interrupted.ts';
import type { Wallets } from '../../platform/wallets.ts';
import type { Verdict } from '../reconciler/kind.ts';
import { converge, type Surroundings } from './converge.ts';
import { RefusalMemory } from './refused-changes.ts';

type Members = Readonly<Record<string, unknown>>;

interface Harness {
  readonly fake: FakeRegisters;
  /** What the resource wants from now on. */
  spec: Members;
  surroundings: Surroundings;
  nowMs: number;
  /** One reconcile; what the operator keeps in its own memory survives. */
  pass(): Promise<Verdict>;
}

const { log } = testRuntime('operator', { level: 'silent' });

interface HarnessOptions {
  readonly when?: (call: string) => Interruption;
  /** Services that are there already. */
  readonly fake?: FakeRegisters;
}

function harness(
  spec: Members = {},
  { when = () => undefined, fake = fakeRegisters() }: HarnessOptions = {},
): Harness {
  const port: Registers & Wallets = interrupted(fake, when);
  const memory = new RefusalMemory();
  let status: Members = {};
  const made: Harness = {
    fake,
    spec,
    nowMs: NOW_MS,
    surroundings: {
      tenant: readyTenant(),
      validatorSet: setOf(4),
      setNames: ['main'],
      isResourceOf: () => false,
    },
    pass: async () => {
      const resource = registerOf(made.spec, { status: { ...status, observedGeneration: 1 } });
      const deps = {
        clients: { registers: port, wallets: port },
        memory,
        nowMs: () => made.nowMs,
        surroundings: () => made.surroundings,
      };
      const verdict = await converge(deps, { resource, signal: new AbortController().signal, log });
      status = verdict.status ?? {};
      return verdict;
    },
  };
  return made;
}

/** Passes and dockets until the register is as wanted; how many passes it took. */
async function settle(made: Harness, most = 40): Promise<number> {
  for (let passes = 1; passes <= most; passes += 1) {
    const verdict = await made.pass().catch(() => undefined);
    if (verdict?.outcome.state === 'ready') return passes;
    made.fake.seal();
  }
  throw new Error('does not settle');
}

describe('a new register', () => {
  test('is made in one pass and ready after docket 0', async () => {
    const made = harness();
    expect((await made.pass()).outcome).toMatchObject({ reason: 'GenesisPending' });
    expect(made.fake.all()).toMatchObject([{ phase: 'GenesisSubmitted' }]);
    made.fake.seal();
    const verdict = await made.pass();
    expect(verdict.outcome).toMatchObject({ state: 'ready' });
    expect(verdict.status).toMatchObject({ phase: 'Online', height: 1 });
    const before = made.fake.writes();
    await made.pass();
    expect(made.fake.writes()).toBe(before);
  });

  test('of another owner waits for the signature and costs nothing meanwhile', async () => {
    const made = harness({ owners: [{ walletAddress: OWNER }] });
    expect((await made.pass()).outcome.message).toContain(OWNER);
    const before = made.fake.writes();
    await made.pass();
    await made.pass();
    expect(made.fake.writes()).toBe(before);
    made.fake.sign(UIDS.register);
    made.fake.edit(made.fake.all()[0]?.registerId ?? '', { pendingAttestations: [] });
    await made.pass();
    expect(made.fake.all()).toMatchObject([{ phase: 'GenesisSubmitted' }]);
  });

  test('waits for a validator that does not answer, and is tried again soon', async () => {
    const made = harness();
    made.fake.absent.add('validator-main-2');
    const verdict = await made.pass();
    expect(verdict.outcome).toMatchObject({ state: 'reconciling', reason: 'DependencyNotReady' });
    expect(verdict.requeueAfterMs).toBe(5000);
    made.fake.absent.clear();
    await settle(made);
    expect(made.fake.all()).toHaveLength(1);
  });

  test('that cannot be adopted shows as failed', async () => {
    const made = harness({ registerId: 'f'.repeat(32) });
    const verdict = await made.pass();
    expect(verdict.outcome).toMatchObject({ state: 'stalled', reason: 'InvalidReference' });
    expect(verdict.status).toMatchObject({ phase: 'Failed' });
  });
});

describe('adoption', () => {
  /** A register that stands for another resource, which is in the cluster or not. */
  async function adopt(
    isThere: boolean,
  ): Promise<{ readonly fake: FakeRegisters; readonly verdict: Verdict }> {
    const former = harness();
    await settle(former);
    const { fake } = former;
    const registerId = fake.all()[0]?.registerId ?? '';
    await fake.remove(UIDS.register, 'Retain');
    const bound = {
      title: 'Invoices',
      purpose: 'General' as const,
      owners: [{ operatorWallet: true as const }],
      devMode: false,
      validators: [],
      registerId,
    };
    await fake.upsert(UIDS.other, bound);
    const made = harness({ registerId }, { fake });
    made.surroundings = { ...made.surroundings, isResourceOf: () => isThere };
    return { fake, verdict: await made.pass() };
  }

  test('takes over from a resource that is gone', async () => {
    const { fake, verdict } = await adopt(false);
    expect(verdict.outcome.state).toBe('ready');
    expect(fake.all()).toHaveLength(1);
  });

  test('takes nothing from a resource that is there', async () => {
    const { verdict } = await adopt(true);
    expect(verdict.outcome).toMatchObject({ state: 'stalled', reason: 'AdoptionRefused' });
  });
});

describe('changes', () => {
  test('of every aggregate go side by side, each once', async () => {
    const made = harness({ devMode: true });
    await settle(made);
    const before = made.fake.writes();
    made.spec = { title: 'Bills', policy: { consensus: { docketBuildIntervalMs: 500 } } };
    made.surroundings = { ...made.surroundings, validatorSet: setOf(5) };
    await made.pass();
    await made.pass();
    expect(made.fake.writes() - before).toBe(4);
    await settle(made);
    expect(made.fake.writes() - before).toBe(4);
    expect(made.fake.all()).toMatchObject([{ title: 'Bills', devMode: false, policyVersion: 2 }]);
  });

  test('that the ledger refuses are asked for once, and again after five minutes', async () => {
    const made = harness();
    await settle(made);
    let asked = 0;
    made.fake.refuses = () => {
      asked += 1;
      return 'VAL_POLICY_002';
    };
    made.spec = { policy: { consensus: { docketBuildIntervalMs: 500 } } };
    for (let pass = 0; pass < 5; pass += 1) {
      expect((await made.pass()).outcome).toMatchObject({ state: 'stalled', reason: 'PolicyRejected' });
    }
    expect(asked).toBe(1);
    made.nowMs += 300_000;
    await made.pass();
    expect(asked).toBe(2);
    made.spec = { policy: { consensus: { docketBuildIntervalMs: 600 } } };
    await made.pass();
    expect(asked).toBe(3);
  });

  test('that others must vote for are proposed once', async () => {
    const made = harness();
    await settle(made);
    made.fake.voters = 2;
    made.spec = { policy: { consensus: { docketBuildIntervalMs: 500 } } };
    for (let pass = 0; pass < 3; pass += 1) {
      const { outcome } = await made.pass();
      expect(outcome).toMatchObject({ reason: 'PolicyPending' });
      expect(outcome.message).toContain('1 of 2 votes');
    }
    expect(made.fake.all()[0]?.proposals).toHaveLength(1);
  });

  test('of a set walk one validator a docket and never cost the quorum', async () => {
    const made = harness();
    await settle(made);
    made.surroundings = { ...made.surroundings, validatorSet: setOf(7) };
    expect(await settle(made)).toBeGreaterThan(3);
    expect(made.fake.all()[0]?.validators.size).toBe(7);
    made.surroundings = { ...made.surroundings, validatorSet: setOf(1) };
    await settle(made);
    expect(made.fake.all()[0]?.validators.size).toBe(1);
  });

  test('stop at the member that the quorum needs', async () => {
    const made = harness();
    await settle(made);
    const [ledger] = made.fake.all();
    const members = (ledger?.validators.members ?? []).map((each, at) => ({ ...each, operational: at > 0 }));
    made.fake.edit(ledger?.registerId ?? '', { validators: validatorNumbers(members) });
    made.surroundings = { ...made.surroundings, validatorSet: setOf(3) };
    expect((await made.pass()).outcome).toMatchObject({ state: 'stalled', reason: 'RolloutBlocked' });
  });
});

test('a crash after any call makes no second register, and everything converges', async () => {
  const edits = fc.array(fc.tuple(goodSpecsOf.Register, fc.integer({ min: 1, max: 7 })), {
    minLength: 1,
    maxLength: 3,
  });
  const faults = fc.array(fc.constantFrom<Interruption>('request', 'response', undefined, undefined), {
    maxLength: 40,
  });
  const run = fc.asyncProperty(edits, faults, async (specs, broken) => {
    let call = 0;
    const made = harness({}, { when: () => broken[call++] });
    let metadata: Members = {};
    for (const [spec, replicas] of specs) {
      // entries of metadata are only added, owners stay
      metadata = { ...(spec['metadata'] as Members | undefined), ...metadata };
      const { registerId: _, owners: __, admins: ___, devMode: ____, ...free } = spec;
      made.spec = { ...free, metadata, validatorSetRef: { name: 'main' }, tenantRef: { name: 'acme' } };
      made.surroundings = { ...made.surroundings, validatorSet: setOf(replicas) };
      const least = (made.spec['policy'] as { validators?: { minValidators?: number } } | undefined)
        ?.validators;
      if ((least?.minValidators ?? 1) > 1) continue;
      await settle(made, 120);
      expect(made.fake.all()).toHaveLength(1);
      const writes = made.fake.writes();
      await settle(made, 120);
      expect(made.fake.writes()).toBe(writes);
    }
  });
  await fc.assert(run, { numRuns: 100 });
});
