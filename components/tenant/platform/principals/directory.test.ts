import { expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { createPrincipalDirectory } from './directory.ts';
import type { Principal } from './principal.ts';

const principal = (clientId: string): Principal => ({
  principalId: 'p',
  clientId,
  serviceName: 's',
  secretHash: undefined,
  scopes: [],
  canSignSystem: false,
  isActive: true,
});

it('reads once while the entry is fresh, and again when it is stale or invalidated', async () => {
  const clock = manualClock(0);
  const reads: string[] = [];
  const directory = createPrincipalDirectory(async (id) => {
    reads.push(id);
    return principal(id);
  }, clock);
  await Promise.all([directory.find('a'), directory.find('a')]);
  expect(directory.peek('a')?.clientId).toBe('a');
  expect(reads).toEqual(['a']);
  clock.advance(2_000);
  expect(directory.peek('a')).toBeUndefined();
  await directory.find('a');
  directory.invalidate();
  await directory.find('a');
  expect(reads).toEqual(['a', 'a', 'a']);
});

it('does not cache a failed read', async () => {
  let fails = true;
  const directory = createPrincipalDirectory(async (id) => {
    if (fails) throw new Error('database away');
    return principal(id);
  }, manualClock(0));
  await expect(directory.find('a')).rejects.toThrow('database away');
  fails = false;
  await expect(directory.find('a')).resolves.toMatchObject({ clientId: 'a' });
});
