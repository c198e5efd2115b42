import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tenants } from '../reconciler/resources.ts';
import { startWorld, type World } from '../testing/operator.ts';

let world: World;

beforeEach(async () => {
  world = await startWorld();
});

afterEach(() => world.close());

const registerCount = (name: string) =>
  (world.find(tenants, name)?.['status'] as { registerCount?: number } | undefined)?.registerCount;

describe('an unavailable count of registers', () => {
  const names = Array.from({ length: 20 }, (_, each) => `t${each}`);
  const putAll = () => {
    for (const name of names) world.put(tenants, name, { displayName: 'Tenant', subdomain: `the-${name}` });
  };
  const allReady = () => names.every((name) => world.isReady(tenants, name));

  test('is requested again soon', async () => {
    let isAway = true;
    world.interrupt = (call) => (call === 'count' && isAway ? 'request' : undefined);
    await world.start('one');
    putAll();
    await world.until('the tenants', allReady);
    isAway = false;
    const beganMs = world.timing.monotonicMs();
    await world.until('the counts', () => names.every((name) => registerCount(name) === 0));
    expect(world.timing.monotonicMs() - beganMs).toBeLessThan(65_000);
  });

  test('costs few calls for any number of tenants', async () => {
    world.interrupt = (call) => (call === 'count' ? 'request' : undefined);
    await world.start('one');
    putAll();
    await world.until('the tenants', allReady);
    world.calls.length = 0;
    await world.pass(300_000);
    // four workers, once per 30 s
    expect(world.calls.filter((call) => call === 'count').length).toBeLessThanOrEqual(4 * 10);
  });
});
