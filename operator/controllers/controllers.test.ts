import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sleep } from '#kit/clock/timing.ts';
import { annotations } from '../api/names.ts';
import { configMaps, ingresses } from '../kube/kinds.ts';
import type { Resource } from '../kube/resource.ts';
import { REGISTER_ID } from '../plan/testing/objects.ts';
import { FakeMembers } from '../platform/testing/fake-members.ts';
import { registers, tenants, validatorSets } from './reconciler/resources.ts';
import { startWorld, type World, writesTo } from './testing/operator.ts';
import { createValidatorSetController } from './validator-set/controller.ts';

const LONG_MS = 60_000;
const acme = { displayName: 'Acme', subdomain: 'acme' };
const invoices = { title: 'Invoices', tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } };

let world: World;

beforeEach(async () => {
  world = await startWorld();
});

afterEach(() => world.close());

const both = () => world.isReady(tenants, 'acme') && world.isReady(registers, 'invoices');

function applySamples(): void {
  world.putSet('main', 4);
  world.put(tenants, 'acme', acme);
  world.put(registers, 'invoices', invoices);
}

/** Deletes an object like kubectl delete. */
function deleteObject(resource: typeof tenants, name: string): void {
  const { group, version, plural } = resource;
  const target = { group, version, plural, namespace: 'acme', name };
  const deletionTimestamp = new Date(world.timing.nowMs()).toISOString();
  world.server.state.merge(target, { metadata: { deletionTimestamp } });
}

const is = (resource: typeof tenants, name: string, reason: string) => () =>
  world.condition(resource, name, 'Ready')?.reason === reason;

describe('a tenant, a set and a register', () => {
  test('become an organisation and a register that four validators have sealed', async () => {
    await world.start('one');
    applySamples();
    await world.until('both to be ready', both);
    expect(world.organizations.all()).toMatchObject([{ name: 'Acme', state: 'Active' }]);
    const [organization] = world.organizations.all();
    expect(world.ledgers.all()).toMatchObject([
      { title: 'Invoices', phase: 'Online', height: 1, validators: { size: 4, quorum: 3 } },
    ]);
    expect(world.find(tenants, 'acme')?.['status']).toMatchObject({
      organizationId: organization?.organizationId,
      state: 'Active',
      userCount: 0,
    });
    await world.until('the count', () => {
      const status = world.find(tenants, 'acme')?.['status'] as { registerCount?: number };
      return status.registerCount === 1;
    });
    expect(world.find(registers, 'invoices')?.['status']).toMatchObject({
      phase: 'Online',
      height: 1,
      policyVersion: 1,
      validators: { summary: '4/4' },
    });
  });

  test('give the organisation its Ingress', async () => {
    await world.start('one');
    world.put(tenants, 'acme', acme);
    await world.until('the tenant', () => world.isReady(tenants, 'acme'));
    expect(world.find(ingresses, 'tenant-acme')?.['spec']).toMatchObject({
      rules: [{ host: 'acme.chancery.example.org' }],
    });
  });

  test(
    'cause no writes without changes',
    async () => {
      await world.start('one');
      applySamples();
      await world.until('both to be ready', both);
      await world.pass(60_000);
      world.server.requests.length = 0;
      world.calls.length = 0;
      await world.pass(600_000);
      expect(writesTo(world.server)).toEqual([]);
      expect(new Set(world.calls)).toEqual(new Set(['find', 'count']));
      expect(world.calls.length).toBeLessThanOrEqual(30);
    },
    LONG_MS,
  );

  test('follow an edit', async () => {
    await world.start('one');
    applySamples();
    await world.until('both to be ready', both);
    world.put(tenants, 'acme', { ...acme, suspended: true });
    world.put(registers, 'invoices', { ...invoices, title: 'Bills' });
    await world.until('both edits', () => {
      const [organization] = world.organizations.all();
      const [ledger] = world.ledgers.all();
      return organization?.state === 'Suspended' && ledger?.title === 'Bills' && both();
    });
  });

  test('follow a set that is scaled up and down', async () => {
    await world.start('one');
    applySamples();
    await world.until('both to be ready', both);
    world.putSet('main', 7);
    await world.until('seven', () => world.ledgers.all()[0]?.validators.size === 7);
    world.putSet('main', 3);
    await world.until('three', () => world.ledgers.all()[0]?.validators.size === 3);
    expect(world.ledgers.all()[0]?.validators.members.map(({ validatorId }) => validatorId)).toEqual([
      'validator-main-0',
      'validator-main-1',
      'validator-main-2',
    ]);
  });
});

describe('a missing dependency', () => {
  test('is named, and the register continues when it exists', async () => {
    await world.start('one');
    world.put(registers, 'invoices', invoices);
    await world.until('the complaint', is(registers, 'invoices', 'InvalidReference'));
    expect(world.condition(registers, 'invoices', 'Stalled')?.message).toContain('Tenant acme');
    world.put(tenants, 'acme', acme);
    await world.until('the next complaint', () =>
      String(world.condition(registers, 'invoices', 'Ready')?.message).includes('ValidatorSet main'),
    );
    world.putSet('main', 4);
    await world.until('the register', () => world.isReady(registers, 'invoices'));
  });

  test(
    'an unresponsive service costs few calls and delays no other object',
    async () => {
      world.interrupt = (call) => (call === 'ensure' ? 'request' : undefined);
      await world.start('one');
      applySamples();
      await world.until('the tenant', () => world.isReady(tenants, 'acme'));
      await world.until('the complaint', () =>
        String(world.condition(registers, 'invoices', 'Ready')?.message).includes('broke during ensure'),
      );
      world.calls.length = 0;
      await world.pass(600_000);
      expect(world.calls.filter((each) => each === 'ensure').length).toBeLessThanOrEqual(15);
      world.interrupt = () => undefined;
      await world.until('the register', () => world.isReady(registers, 'invoices'));
    },
    LONG_MS,
  );

  test('a taken subdomain is reported with the remedy', async () => {
    const { organizationId } = world.organizations.addUnbound({ subdomain: 'acme' });
    await world.start('one');
    world.put(tenants, 'acme', acme);
    await world.until('the complaint', is(tenants, 'acme', 'AdoptionRefused'));
    expect(world.condition(tenants, 'acme', 'Stalled')?.message).toContain(
      `spec.organizationId: ${organizationId}`,
    );
    expect(world.organizations.all()).toHaveLength(1);
  });

  test('an unknown register is not created by an adoption', async () => {
    await world.start('one');
    world.putSet('main', 4);
    world.put(tenants, 'acme', acme);
    world.put(registers, 'invoices', { ...invoices, registerId: REGISTER_ID });
    await world.until('the complaint', is(registers, 'invoices', 'InvalidReference'));
    expect(world.find(registers, 'invoices')?.['status']).toMatchObject({ phase: 'Failed' });
    expect(world.ledgers.all()).toEqual([]);
  });
});

describe('deletion', () => {
  async function ready(deletionPolicy: { tenant: string; register: string }): Promise<void> {
    await world.start('one');
    world.putSet('main', 4);
    world.put(tenants, 'acme', { ...acme, deletionPolicy: deletionPolicy.tenant });
    world.put(registers, 'invoices', { ...invoices, deletionPolicy: deletionPolicy.register });
    await world.until('both to be ready', both);
    deleteObject(registers, 'invoices');
    deleteObject(tenants, 'acme');
  }
  const gone = () =>
    world.find(tenants, 'acme') === undefined && world.find(registers, 'invoices') === undefined;

  const bothBlocked = () =>
    is(tenants, 'acme', 'DeletionBlocked')() && is(registers, 'invoices', 'DeletionBlocked')();

  test('keeps data with the policy Retain', async () => {
    await ready({ tenant: 'Retain', register: 'Retain' });
    await world.until('the objects to go', gone);
    expect(world.organizations.all()).toMatchObject([{ state: 'Active' }]);
    expect(world.ledgers.all()).toMatchObject([{ phase: 'Online' }]);
  });

  test('suspends and deletes with the other policies', async () => {
    await ready({ tenant: 'Suspend', register: 'Purge' });
    await world.until('the objects to go', gone);
    expect(world.organizations.all()).toMatchObject([{ state: 'Suspended' }]);
    expect(world.ledgers.all()).toMatchObject([{ phase: 'Deleting', deletion: { policy: 'Purge' } }]);
  });

  test.each([
    ['refuses', 0],
    ['is silent for 10 s each time', 10_000],
  ])(
    'waits with a condition for a service that %s, and ends when it answers',
    async (_, silentMs) => {
      world.interrupt = async (call) => {
        if (call !== 'remove') return undefined;
        await sleep(world.timing, silentMs);
        return 'request';
      };
      await ready({ tenant: 'Delete', register: 'Tombstone' });
      await world.until('both complaints', bothBlocked);
      world.calls.length = 0;
      await world.pass(600_000);
      // each of the two is retried two to three times a minute; one attempt may fail while the service returns
      const attempts = world.calls.filter((each) => each === 'remove').length;
      expect(attempts).toBeGreaterThanOrEqual(2 * 2 * 10);
      expect(attempts).toBeLessThanOrEqual(2 * 3 * 10);
      expect(gone()).toBe(false);
      world.interrupt = () => undefined;
      const responseMs = world.timing.monotonicMs();
      await world.until('the objects to go', gone);
      expect(world.timing.monotonicMs() - responseMs).toBeLessThan(60_000);
    },
    LONG_MS,
  );

  test('retries an unavailable service soon, then rarely', async () => {
    const attempts: number[] = [];
    await world.start('one');
    world.put(tenants, 'acme', { ...acme, deletionPolicy: 'Delete' });
    await world.until('the tenant', () => world.isReady(tenants, 'acme'));
    // its children are in the caches
    await world.pass(10_000);
    world.interrupt = (call) => {
      if (call !== 'remove') return undefined;
      attempts.push(world.timing.monotonicMs());
      return 'request';
    };
    deleteObject(tenants, 'acme');
    await world.until('three looks', () => attempts.length === 3);
    const [first = 0, second = 0, third = 0] = attempts;
    expect(second - first).toBeLessThan(10_000);
    expect(third - second).toBeGreaterThan(20_000);
  });

  test('that keeps the data does not wait for an unavailable service, and its cleanup follows later', async () => {
    world.interrupt = (call) => (call === 'remove' ? 'request' : undefined);
    await ready({ tenant: 'Suspend', register: 'Retain' });
    const beganMs = world.timing.monotonicMs();
    await world.until('the objects to go', gone);
    const tookMs = world.timing.monotonicMs() - beganMs;
    expect(tookMs).toBeGreaterThanOrEqual(20_000);
    expect(tookMs).toBeLessThan(60_000);
    const left = () => Object.keys(world.find(configMaps, 'chancery-orphans')?.['data'] ?? {});
    expect(left()).toHaveLength(2);
    expect(world.organizations.all()).toMatchObject([{ state: 'Active' }]);
    world.interrupt = () => undefined;
    await world.until('the rest', () => left().length === 0);
    expect(world.organizations.all()).toMatchObject([{ state: 'Suspended' }]);
  });

  test('of all objects at once waits only for referring objects', async () => {
    const members = new FakeMembers();
    await world.start('one', (dependencies) => [
      createValidatorSetController({ dependencies, members, principals: members }),
    ]);
    const named = (kind: string, count: number) =>
      Array.from({ length: count }, (_, each) => `${kind}-${each}`);
    const all = [
      { resource: registers, names: named('register', 10) },
      { resource: validatorSets, names: named('set', 2) },
      { resource: tenants, names: named('tenant', 40) },
    ];
    for (const name of named('set', 2)) world.putSet(name, 1);
    for (const name of named('tenant', 40)) world.put(tenants, name, { displayName: name, subdomain: name });
    for (const [place, name] of named('register', 10).entries()) {
      const validatorSetRef = { name: `set-${place % 2}` };
      world.put(registers, name, { title: name, tenantRef: { name: `tenant-${place}` }, validatorSetRef });
    }
    const each = <T>(act: (resource: Resource, name: string) => T): readonly T[] =>
      all.flatMap(({ resource, names }) => names.map((name) => act(resource, name)));
    const isHeld = (resource: Resource, name: string) =>
      world.find(resource, name)?.metadata.finalizers?.length === 1;
    await world.until('all to be held', () => each(isHeld).every(Boolean));
    let isAway = true;
    world.interrupt = (call) => (call === 'remove' && isAway ? 'request' : undefined);
    each(deleteObject);
    const inUse = ['set-0', 'set-1'].map((name) => is(validatorSets, name, 'InUse'));
    await world.until('the sets to wait for the registers', () => inUse.every((holds) => holds()));
    isAway = false;
    const beganMs = world.timing.monotonicMs();
    await world.until('all to go', () =>
      each((resource, name) => world.find(resource, name) === undefined).every(Boolean),
    );
    expect(world.timing.monotonicMs() - beganMs).toBeLessThan(10_000);
  });

  test('by force needs the right uid', async () => {
    world.interrupt = () => 'request';
    await world.start('one');
    world.put(tenants, 'acme', { ...acme, deletionPolicy: 'Delete' });
    await world.until('the finalizer', () => world.find(tenants, 'acme')?.metadata.finalizers?.length === 1);
    deleteObject(tenants, 'acme');
    const annotate = (uid: string) => {
      const { group, version, plural } = tenants;
      const target = { group, version, plural, namespace: 'acme', name: 'acme' };
      world.server.state.merge(target, { metadata: { annotations: { [annotations.forceDelete]: uid } } });
    };
    annotate('1f2e3d4c-5b6a-4798-8a9b-0c1d2e3f4a5b');
    await world.until('the complaint', is(tenants, 'acme', 'DeletionBlocked'));
    annotate(world.find(tenants, 'acme')?.metadata.uid ?? '');
    await world.until('the object to go', () => world.find(tenants, 'acme') === undefined);
  });
});

describe('faults', () => {
  test(
    'of the API server and of the services: the state converges, and nothing is created twice',
    async () => {
      await world.start('one');
      let calls = 0;
      world.server.intercept = ({ target, isWatch }) => {
        if (target.plural === 'leases' || isWatch) return undefined;
        calls += 1;
        const faults = {
          2: { status: 500 },
          5: { status: 409, reason: 'Conflict' },
          8: 'reset-after',
        } as const;
        return Object.entries(faults).find(([place]) => calls % 11 === Number(place))?.[1];
      };
      let callCount = 0;
      world.interrupt = () => {
        callCount += 1;
        if (callCount % 5 === 1) return 'request';
        return callCount % 5 === 3 ? 'response' : undefined;
      };

      world.putSet('main', 4);
      for (let count = 0; count < 10; count += 1) {
        world.put(tenants, `t${count}`, { displayName: `Tenant ${count}`, subdomain: `tenant-${count}` });
        world.put(registers, `r${count}`, { ...invoices, tenantRef: { name: `t${count}` } });
      }
      await world.pass(5_000);
      world.server.intercept = () => undefined;
      world.interrupt = () => undefined;
      await world.until('all', () =>
        Array.from({ length: 10 }).every(
          (_, count) => world.isReady(tenants, `t${count}`) && world.isReady(registers, `r${count}`),
        ),
      );
      expect(world.organizations.all()).toHaveLength(10);
      expect(world.ledgers.all()).toHaveLength(10);
    },
    LONG_MS,
  );

  test(
    'of the process after every call: the next process creates nothing twice',
    async () => {
      applySamples();
      for (let crash = 1; crash <= 12; crash += 1) {
        let left = crash;
        const died = Promise.withResolvers<void>();
        world.interrupt = () => {
          left -= 1;
          if (left > 0) return undefined;
          died.resolve();
          return 'response';
        };
        const operator = await world.start(`o${crash}`);
        await world.until('the crash or both', () => left <= 0 || both());
        await operator.kill();
        expect(world.organizations.all().length).toBeLessThanOrEqual(1);
        expect(world.ledgers.all().length).toBeLessThanOrEqual(1);
      }
      world.interrupt = () => undefined;
      await world.start('last');
      await world.until('both to be ready', both);
      expect(world.organizations.all()).toHaveLength(1);
      expect(world.ledgers.all()).toHaveLength(1);
    },
    LONG_MS,
  );
});
