import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { call, createTestWorld, type TestWorld } from './testing/world.ts';

/** From /proc/net/tcp: the kernel counts in hundredths of a second, and identifies timers by number. */
const keepAliveTimer = '02';
const ticksInSecond = 100;

/** Seconds until the kernel sends a keep-alive probe on the connection to a local port; undefined when it will not. */
function nextProbeSeconds(port: number): number | undefined {
  const peer = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  for (const line of readFileSync('/proc/net/tcp', 'utf8').split('\n')) {
    const [, , remote, , , timer = ''] = line.trim().split(/\s+/);
    const [kind, ticks = ''] = timer.split(':');
    if (remote === peer && kind === keepAliveTimer) return Number.parseInt(ticks, 16) / ticksInSecond;
  }
  return undefined;
}

describe.runIf(process.platform === 'linux')('a connection that waits for an answer', () => {
  let world: TestWorld;

  beforeAll(async () => {
    world = await createTestWorld();
  });
  afterAll(() => world.stop());

  it('is probed by TCP keep-alive', async () => {
    const held: (() => void)[] = [];
    const register = await world.startService('register', (_request, response) => {
      held.push(() => response.end('at last'));
    });
    const gateway = await world.startGateway({ register: register.address });
    const answer = call(gateway.port, '/api/registers');
    await waitFor(() => held.length === 1);
    const port = Number(register.address.split(':')[1]);
    const seconds = await waitFor(() => nextProbeSeconds(port), { what: 'the timer' });
    expect(seconds).toBeLessThanOrEqual(5);
    held[0]?.();
    expect((await answer).text).toBe('at last');
  });
});
