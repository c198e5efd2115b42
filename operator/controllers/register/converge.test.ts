import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { goodSpecsOf } from '../../api/testing/arbitraries.ts';
import { validatorNumbers } from '../../plan/register/apply-change.ts';
import { NOW_MS, OWNER, readyTenant, registerOf, setOf, UIDS } from '../../plan/testing/objects.ts';
import type { Registers } from '../../platform/registers.ts';
import { type FakeRegisters, fakeRegisters } from '../../platform/testing/fake-registers.ts';
import { type Interruption, withInterruptions } from '../../platform/testing/interrupted.ts';
import type { Wallets } from '../../platform/wallets.ts';
import type { ReconcileResult } from '../reconciler/kind.ts';
import { converge, type RelatedObjects } from './converge.ts';
import { RefusedChanges } from './refused-changes.ts';

type Members = Readonly<Record<string, unknown>>;

interface Harness {
  readonly fake: FakeRegisters;
  /** Changes the spec of the resource. */
  spec: Members;
  relatedObjects: RelatedObjects;
  nowMs: number;
  /** One reconcile; the operator's memory is kept. */
  request(): Promise<ReconcileResult>;
}

const { log } = testRuntime('operator', { level: 'silent' });

interface HarnessOptions {
  readonly when?: (call: string) => Interruption;
  /** Existing services. */
  readonly fake?: FakeRegisters;
}

function harness(
  spec: Members = {},
  { when = () => undefined, fake = fakeRegisters() }: HarnessOptions = {},
): Harness {
  const port: Registers & Wallets = withInterruptions(fake, when);
  const refusedChanges = new RefusedChanges();
  let status: Members = {};
  const made: Harness = {
    fake,
    spec,
    nowMs: NOW_MS,
    relatedObjects: {
      tenant: readyTenant(),
      validatorSet: setOf(4),
      setNames: ['main'],
      isResourceOf: () => false,
    },
    request: async () => {
      const resource = registerOf(made.spec, { status: { ...status, observedGeneration: 1 } });
      const deps = {
        clients: { registers: port, wallets: port },
        refusedChanges,
        nowMs: () => made.nowMs,
        relatedObjects: () => made.relatedObjects,
      };
      const result = await converge(deps, { resource, signal: new AbortController().signal, log });
      status = result.status ?? {};
      return result;
    },
  };
  return made;
}

/** Reconciles and seals until the register matches the spec; returns the number of reconciles. */
async function settle(made: Harness, most = 40): Promise<number> {
  for (let passes = 1; passes <= most; passes += 1) {
    const result = await made.request().catch(() => undefined);
    if (result?.outcome.state === 'ready') return passes;
    made.fake.seal();
  }
  throw new Error('does not settle');
}

describe('a new register', () => {
  test('is created in one reconcile and ready after docket 0', async () => {
    const made = harness();
    expect((await made.request()).outcome).toMatchObject({ reason: 'GenesisPending' });
    expect(made.fake.all()).toMatchObject([{ phase: 'GenesisSubmitted' }]);
    made.fake.seal();
    const result = await made.request();
    expect(result.outcome).toMatchObject({ state: 'ready' });
    expect(result.status).toMatchObject({ phase: 'Online', height: 1 });
    const before = made.fake.writes();
    await made.request();
    expect(made.fake.writes()).toBe(before);
  });

  test('of another owner waits for the signature without further calls', async () => {
    const made = harness({ owners: [{ walletAddress: OWNER }] });
    expect((await made.request()).outcome.message).toContain(OWNER);
    const before = made.fake.writes();
    await made.request();
    await made.request();
    expect(made.fake.writes()).toBe(before);
    made.fake.sign(UIDS.register);
    made.fake.edit(made.fake.all()[0]?.registerId ?? '', { pendingAttestations: [] });
    await made.request();
    expect(made.fake.all()).toMatchObject([{ phase: 'GenesisSubmitted' }]);
  });

  test('waits for an unresponsive validator and is retried soon', async () => {
    const made = harness();
    made.fake.absent.add('validator-main-2');
    const result = await made.request();
    expect(result.outcome).toMatchObject({ state: 'reconciling', reason: 'DependencyNotReady' });
    expect(result.requeueAfterMs).toBe(5000);
    made.fake.absent.clear();
    await settle(made);
    expect(made.fake.all()).toHaveLength(1);
  });

  test('that cannot be adopted has the phase Failed', async () => {
    const made = harness({ registerId: 'f'.repeat(32) });
    const result = await made.request();
    expect(result.outcome).toMatchObject({ state: 'stalled', reason: 'InvalidReference' });
    expect(result.status).toMatchObject({ phase: 'Failed' });
  });
});

describe('adoption', () => {
  /** A register that is bound to another resource, which may exist in the cluster. */
  async function adopt(
    isThere: boolean,
  ): Promise<{ readonly fake: FakeRegisters; readonly result: ReconcileResult }> {
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
    made.relatedObjects = { ...made.relatedObjects, isResourceOf: () => isThere };
    return { fake, result: await made.request() };
  }

  test('replaces a resource that no longer exists', async () => {
    const { fake, result } = await adopt(false);
    expect(result.outcome.state).toBe('ready');
    expect(fake.all()).toHaveLength(1);
  });

  test('does not replace an existing resource', async () => {
    const { result } = await adopt(true);
    expect(result.outcome).toMatchObject({ state: 'stalled', reason: 'AdoptionRefused' });
  });
});

describe('changes', () => {
  test('of different aggregates are requested concurrently, each once', async () => {
    const made = harness({ devMode: true });
    await settle(made);
    const before = made.fake.writes();
    made.spec = { title: 'Bills', policy: { consensus: { docketBuildIntervalMs: 500 } } };
    made.relatedObjects = { ...made.relatedObjects, validatorSet: setOf(5) };
    await made.request();
    await made.request();
    expect(made.fake.writes() - before).toBe(4);
    await settle(made);
    expect(made.fake.writes() - before).toBe(4);
    expect(made.fake.all()).toMatchObject([{ title: 'Bills', devMode: false, policyVersion: 2 }]);
  });

  test('that the ledger refuses are requested once, and again after five minutes', async () => {
    const made = harness();
    await settle(made);
    let callCount = 0;
    made.fake.refuses = () => {
      callCount += 1;
      return 'VAL_POLICY_002';
    };
    made.spec = { policy: { consensus: { docketBuildIntervalMs: 500 } } };
    for (let request = 0; request < 5; request += 1) {
      expect((await made.request()).outcome).toMatchObject({ state: 'stalled', reason: 'PolicyRejected' });
    }
    expect(callCount).toBe(1);
    made.nowMs += 300_000;
    await made.request();
    expect(callCount).toBe(2);
    made.spec = { policy: { consensus: { docketBuildIntervalMs: 600 } } };
    await made.request();
    expect(callCount).toBe(3);
  });

  test('that need votes are proposed once', async () => {
    const made = harness();
    await settle(made);
    made.fake.voters = 2;
    made.spec = { policy: { consensus: { docketBuildIntervalMs: 500 } } };
    for (let request = 0; request < 3; request += 1) {
      const { outcome } = await made.request();
      expect(outcome).toMatchObject({ reason: 'PolicyPending' });
      expect(outcome.message).toContain('1 of 2 votes');
    }
    expect(made.fake.all()[0]?.proposals).toHaveLength(1);
  });

  test('of a set change one validator per docket and keep the quorum', async () => {
    const made = harness();
    await settle(made);
    made.relatedObjects = { ...made.relatedObjects, validatorSet: setOf(7) };
    expect(await settle(made)).toBeGreaterThan(3);
    expect(made.fake.all()[0]?.validators.size).toBe(7);
    made.relatedObjects = { ...made.relatedObjects, validatorSet: setOf(1) };
    await settle(made);
    expect(made.fake.all()[0]?.validators.size).toBe(1);
  });

  test('stop at a member that the quorum needs', async () => {
    const made = harness();
    await settle(made);
    const [ledger] = made.fake.all();
    const members = (ledger?.validators.members ?? []).map((each, at) => ({ ...each, operational: at > 0 }));
    made.fake.edit(ledger?.registerId ?? '', { validators: validatorNumbers(members) });
    made.relatedObjects = { ...made.relatedObjects, validatorSet: setOf(3) };
    expect((await made.request()).outcome).toMatchObject({ state: 'stalled', reason: 'RolloutBlocked' });
  });
});

test('a crash after any call creates no second register, and the state converges', async () => {
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
      // metadata can only be added, and owners are immutable
      metadata = { ...(spec['metadata'] as Members | undefined), ...metadata };
      const { registerId: _, owners: __, admins: ___, devMode: ____, ...free } = spec;
      made.spec = { ...free, metadata, validatorSetRef: { name: 'main' }, tenantRef: { name: 'acme' } };
      made.relatedObjects = { ...made.relatedObjects, validatorSet: setOf(replicas) };
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
