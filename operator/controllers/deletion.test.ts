import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sleep } from '#kit/clock/timing.ts';
import { annotations } from '../api/names.ts';
import { configMaps } from '../kube/kinds.ts';
import type { Resource } from '../kube/resource.ts';
import { FakeMembers } from '../platform/testing/fake-members.ts';
import { registers, tenants, validatorSets } from './reconciler/resources.ts';
import { startWorld, type World } from './testing/operator.ts';
import { acme, areSamplesReady, deleteObject, hasReason, invoices } from './testing/samples.ts';
import { createValidatorSetController } from './validator-set/controller.ts';

const LONG_MS = 60_000;

let world: World;

beforeEach(async () => {
  world = await startWorld();
});

afterEach(() => world.close());

const both = () => areSamplesReady(world);

const is = (resource: typeof tenants, name: string, reason: string) => () =>
  hasReason(world, resource, name)(reason);

describe('deletion', () => {
  async function ready(deletionPolicy: { tenant: string; register: string }): Promise<void> {
    await world.start('one');
    world.putSet('main', 4);
    world.put(tenants, 'acme', { ...acme, deletionPolicy: deletionPolicy.tenant });
    world.put(registers, 'invoices', { ...invoices, deletionPolicy: deletionPolicy.register });
    await world.until('both to be ready', both);
    deleteObject(world, registers, 'invoices');
    deleteObject(world, tenants, 'acme');
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
    deleteObject(world, tenants, 'acme');
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
    each((resource, name) => deleteObject(world, resource, name));
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
    deleteObject(world, tenants, 'acme');
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
