import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ingresses } from '../kube/kinds.ts';
import { REGISTER_ID } from '../plan/testing/objects.ts';
import { registers, tenants } from './reconciler/resources.ts';
import { startWorld, type World, writesTo } from './testing/operator.ts';
import { acme, applySamples, areSamplesReady, hasReason, invoices } from './testing/samples.ts';

const LONG_MS = 60_000;

let world: World;

beforeEach(async () => {
  world = await startWorld();
});

afterEach(() => world.close());

const both = () => areSamplesReady(world);

const is = (resource: typeof tenants, name: string, reason: string) => () =>
  hasReason(world, resource, name)(reason);

describe('a tenant, a set and a register', () => {
  test('become an organisation and a register that four validators have sealed', async () => {
    await world.start('one');
    applySamples(world);
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
      applySamples(world);
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
    applySamples(world);
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
    applySamples(world);
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
      applySamples(world);
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
      applySamples(world);
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
