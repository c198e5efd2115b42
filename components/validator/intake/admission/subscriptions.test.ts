import { describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { createSubscriptionCheck } from './subscriptions.ts';

const register = 'ab'.repeat(16);

function world() {
  const clock = manualClock(1_800_000_000_000);
  const subscribed = new Set(['org-1']);
  let asked = 0;
  const isSubscribed = async (organizationId: string): Promise<boolean> => {
    asked += 1;
    return subscribed.has(organizationId);
  };
  const check = createSubscriptionCheck({ isSubscribed }, clock);
  return { clock, subscribed, check, asked: () => asked };
}

describe('the subscription of a submitting user', () => {
  it('is requested once and cached for half a minute', async () => {
    const { check, clock, subscribed, asked } = world();
    expect(check.isCached('org-1', register)).toBe(false);
    await check.assertSubscribed('org-1', register);
    await check.assertSubscribed('org-1', register);
    expect(asked()).toBe(1);
    expect(check.isCached('org-1', register)).toBe(true);
    expect(check.isCached(undefined, register)).toBe(false);
    subscribed.clear();
    clock.advance(30_000);
    expect(check.isCached('org-1', register)).toBe(false);
    await expect(check.assertSubscribed('org-1', register)).rejects.toMatchObject({ kind: 'forbidden' });
  });

  it('is requested once for concurrent checks, also when it does not exist', async () => {
    const { check, asked } = world();
    await Promise.all(Array.from({ length: 5 }, () => check.assertSubscribed('org-1', register)));
    expect(asked()).toBe(1);
    const refused = Array.from({ length: 5 }, () => check.assertSubscribed('org-2', register));
    for (const each of await Promise.allSettled(refused)) expect(each.status).toBe('rejected');
    expect(asked()).toBe(2);
  });

  it('is required: another organisation and no organisation are refused, and checked again', async () => {
    const { check, subscribed } = world();
    const refused = { kind: 'forbidden', code: 'SUBSCRIPTION_REQUIRED' };
    await expect(check.assertSubscribed('org-2', register)).rejects.toMatchObject(refused);
    await expect(check.assertSubscribed(undefined, register)).rejects.toMatchObject(refused);
    subscribed.add('org-2');
    await check.assertSubscribed('org-2', register);
  });
});
