import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualTiming } from '#kit/testing/manual-timing.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { handshake, openSocket, pass, startTestHub, type TestHub } from './hub.fixture.ts';

const limits = { clientTimeoutMs: 1e9 };

/** Opens connections that have entered rooms. */
async function enter(hub: TestHub, ...rooms: readonly string[]) {
  const clients = [];
  for (const room of rooms) {
    const client = await openSocket(hub);
    client.send(handshake, { type: 1, invocationId: '1', target: 'Enter', arguments: [room] });
    await waitFor(() => client.records().some(({ type }) => type === 3));
    clients.push(client);
  }
  return clients;
}

describe('subscriptions that are judged again', () => {
  it('are judged by what holds after they became due, while an earlier round still runs', async () => {
    const timing = manualTiming(Date.now());
    const held = Promise.withResolvers<void>();
    const door = { isHeld: false, isOpen: true };
    const hub = await startTestHub({
      timing,
      limits,
      judge: async (_caller, name) => {
        if (!door.isOpen) throw new AppError('forbidden', 'FORBIDDEN', 'The room was closed.');
        if (door.isHeld && name === 'slow') await held.promise;
      },
    });
    const [busy, slow] = await enter(hub, 'busy', 'slow');
    door.isHeld = true;
    const before = hub.judged.count;
    await pass(timing, 60_500);
    await waitFor(() => hub.judged.count === before + 2);
    // The round waits for the slow room; the busy one, which it has judged, is due a second time.
    await pass(timing, 60_500);
    expect(hub.judged.count).toBe(before + 2);
    door.isOpen = false;
    held.resolve();
    for (const client of [busy, slow]) await waitFor(() => client?.isClosed());
    expect(busy?.records().at(-1)).toMatchObject({ error: 'Unauthorized: The room was closed.' });
    expect(hub.judged.count).toBe(before + 4);
  });

  it('stay when they cannot be judged; each is logged once, for all its connections', async () => {
    const timing = manualTiming(Date.now());
    const database = { isAway: false };
    const hub = await startTestHub({
      timing,
      limits,
      judge: async () => {
        if (database.isAway) throw new Error('the database is away');
      },
    });
    const clients = await enter(hub, 'a', 'a', 'b', 'a');
    database.isAway = true;
    const failures = () =>
      hub.runtime.lines.filter(({ msg }) => msg === 'a subscription could not be judged');
    await pass(timing, 60_500);
    await waitFor(() => failures().length >= 2);
    database.isAway = false;
    const before = hub.judged.count;
    await pass(timing, 60_500);
    await waitFor(() => hub.judged.count === before + 2);
    expect(failures().map(({ group }) => group)).toEqual(['room:a', 'room:b']);
    expect(clients.some((client) => client.isClosed())).toBe(false);
  });
});
