import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createHeldCalls, type HeldCall } from './held-calls.ts';

const nothing = (): void => undefined;

function taken(call: HeldCall | string): HeldCall {
  if (typeof call === 'string') throw new Error(`refused: ${call}`);
  return call;
}

describe('the bounds of held calls', () => {
  it('limits each client, and all of them', () => {
    const calls = createHeldCalls({ most: 3, mostOfClient: 2 });
    const first = taken(calls.take('192.0.2.1', nothing));
    taken(calls.take('192.0.2.1', nothing));
    expect(calls.take('192.0.2.1', nothing)).toBe('client');
    taken(calls.take('192.0.2.2', nothing));
    expect(calls.take('192.0.2.3', nothing)).toBe('gateway');
    first.release();
    first.release();
    expect(calls.count()).toBe(2);
    taken(calls.take('192.0.2.1', nothing));
    expect(calls.take('192.0.2.1', nothing)).toBe('gateway');
  });

  it.each([
    ['2001:db8::1', '2001:db8:0:0:ffff::2', 'client'],
    ['2001:db8:1:2:3:4:5:6', '2001:DB8:1:2::', 'client'],
    ['fe80::1%eth0', 'fe80::2', 'client'],
    ['::1', '::2', 'client'],
    ['2001:db8:0:1::1', '2001:db8:0:2::1', 'open'],
    ['192.0.2.1', '192.0.2.2', 'open'],
    ['', '192.0.2.2', 'open'],
  ])('counts an IPv6 network as one client: %s and %s', (one, other, expected) => {
    const calls = createHeldCalls({ most: 10, mostOfClient: 1 });
    taken(calls.take(one, nothing));
    const second = calls.take(other, nothing);
    expect(typeof second === 'string' ? second : 'open').toBe(expected);
  });

  it('ends every call when the gateway stops, and refuses later ones', () => {
    const calls = createHeldCalls({ most: 10, mostOfClient: 10 });
    const ended: number[] = [];
    for (const n of [1, 2, 3]) {
      const call: HeldCall = taken(
        calls.take('192.0.2.1', () => {
          ended.push(n);
          call.release();
        }),
      );
    }
    calls.endAll();
    expect(ended).toEqual([1, 2, 3]);
    expect(calls.count()).toBe(0);
    expect(calls.take('192.0.2.1', nothing)).toBe('gateway');
  });

  it('never exceeds a bound and forgets clients that have left', () => {
    const step = fc.record({ client: fc.integer({ min: 0, max: 3 }), leaves: fc.boolean() });
    fc.assert(fc.property(fc.array(step), judgeSteps));
  });
});

/** Opens a call of a client at each step, or ends the oldest one. */
function judgeSteps(steps: readonly { readonly client: number; readonly leaves: boolean }[]): void {
  const calls = createHeldCalls({ most: 6, mostOfClient: 3 });
  let open: { client: number; call: HeldCall }[] = [];
  for (const { client, leaves } of steps) {
    const ofClient = open.filter((each) => each.client === client).length;
    const fits = open.length < 6 && ofClient < 3;
    if (leaves) {
      open[0]?.call.release();
      open = open.slice(1);
    } else {
      const call = calls.take(`192.0.2.${client}`, nothing);
      expect(typeof call).toBe(fits ? 'object' : 'string');
      if (typeof call !== 'string') open.push({ client, call });
    }
    expect(calls.count()).toBe(open.length);
  }
}
