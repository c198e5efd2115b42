import { HttpTransportType } from '@microsoft/signalr';
import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualTiming } from '#kit/testing/manual-timing.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  ask,
  connectClient,
  handshake,
  negotiate,
  openSocket,
  pass,
  startTestHub,
  transports,
} from './hub.fixture.ts';

const replay = (replayed: number, complete = true) => ({ replayed, complete });

it('sends a signal that was committed while the one before was delivered, without a pause', async () => {
  const hub = await startTestHub({ timing: manualTiming(Date.now()) });
  const { connection, said } = await connectClient(hub.url);
  await connection.invoke('Enter', 'b');
  const { signalsOf } = hub.log;
  hub.log.signalsOf = (events, isHeld) => {
    if (hub.log.rows.length < 20) hub.log.say('b');
    return signalsOf(events, isHeld);
  };
  hub.log.say('b');
  hub.log.notify();
  // The time of the hub stands still.
  await waitFor(() => said.length === 20);
});

describe.each(transports)('a client over %s', (_name, transport) => {
  it('gets the signals of the groups that it is in', async () => {
    const hub = await startTestHub();
    const { connection, said } = await connectClient(hub.url, { transport });
    hub.log.say('a');
    expect(await connection.invoke('Enter', 'b')).toEqual(replay(0));
    hub.log.say('a', 2);
    hub.log.say('b', 3);
    hub.log.notify();
    await waitFor(() => said.length === 3);
    expect(said).toEqual([
      ['b', 3],
      ['b', 4],
      ['b', 5],
    ]);
    expect(await connection.invoke('Leave', 'b')).toBeNull();
    expect(await connection.invoke('Enter', 'a')).toEqual(replay(0));
    hub.log.say('b');
    hub.log.say('a');
    hub.log.notify();
    await waitFor(() => said.length === 4);
    expect(said.at(-1)).toEqual(['a', 7]);
    await connection.stop();
  });

  it('learns why a method failed', async () => {
    const hub = await startTestHub();
    const { connection } = await connectClient(hub.url, { transport });
    await expect(connection.invoke('Shout', 'b')).rejects.toThrow('Method not found.');
    await expect(connection.invoke('Enter')).rejects.toThrow(
      /Invalid arguments: expected Enter\(name, since\?\)/,
    );
    await expect(connection.invoke('Enter', 'b', 'yesterday')).rejects.toThrow(/Invalid arguments/);
    await expect(connection.invoke('Enter', '../b')).rejects.toThrow(/Invalid arguments/);
    await expect(connection.invoke('Enter', 'nothere')).rejects.toThrow('Unauthorized: The room is closed.');
    expect(connection.state).toBe('Connected');
  });

  it('gets what it missed, in order and without a gap to what follows', async () => {
    const hub = await startTestHub();
    hub.log.say('b', 300);
    hub.log.say('c', 300);
    const { connection, said } = await connectClient(hub.url, { transport });
    const since = new Date(Date.now() - 60_000).toISOString();
    const entered = connection.invoke('Enter', 'b', since);
    for (let n = 0; n < 20; n += 1) {
      hub.log.say('b', 10);
      hub.log.notify();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await entered).toMatchObject({ complete: true });
    await waitFor(() => said.length >= 500);
    expect(said.map(([, n]) => n)).toEqual(
      hub.log.rows.filter(({ key }) => key === 'b').map(({ data }) => data),
    );
  });

  it('is closed within a second of the end of its token', async () => {
    const hub = await startTestHub();
    const { connection, closed } = await connectClient(hub.url, { transport, token: 'ada-1' });
    await connection.invoke('Enter', 'b');
    hub.refusedTokens.set('ada-1', 'Token refused: it was revoked');
    const before = performance.now();
    await waitFor(() => closed.count === 1);
    expect(performance.now() - before).toBeLessThan(2_000);
    if (transport !== HttpTransportType.ServerSentEvents) expect(closed.error?.message).toMatch(/revoked/);
  });

  it('ends its connection by itself', async () => {
    const hub = await startTestHub({ limits: { connectionsPerUser: 1 } });
    for (let n = 0; n < 3; n += 1) {
      const { connection } = await connectClient(hub.url, { transport });
      await connection.invoke('Enter', 'b');
      await connection.stop();
      await waitFor(async () => (await ask(hub, 'POST', '/negotiate')).status === 200);
    }
  });
});

describe('a hub', () => {
  it('opens a WebSocket without negotiation', async () => {
    const hub = await startTestHub();
    const { connection } = await connectClient(hub.url, { skipNegotiation: true });
    expect(await connection.invoke('Enter', 'b')).toEqual(replay(0));
  });

  it('negotiates', async () => {
    const hub = await startTestHub();
    const { text } = await ask(hub, 'POST', '/negotiate?negotiateVersion=1&useStatefulReconnect=true');
    expect(JSON.parse(text)).toEqual({
      negotiateVersion: 1,
      connectionId: expect.stringMatching(/^[0-9a-f]{32}$/),
      connectionToken: expect.stringMatching(/^[\w-]{80,}$/),
      availableTransports: [
        { transport: 'WebSockets', transferFormats: ['Text', 'Binary'] },
        { transport: 'ServerSentEvents', transferFormats: ['Text'] },
        { transport: 'LongPolling', transferFormats: ['Text'] },
      ],
    });
  });

  it('reads records that are split and joined anywhere', async () => {
    const hub = await startTestHub();
    const bytes = Buffer.from(
      [handshake, { type: 1, target: 'Enter', arguments: ['b'], invocationId: '1' }, { type: 6 }]
        .map((one) => `${JSON.stringify(one)}\u001e`)
        .join(''),
    );
    for (let at = 0; at <= bytes.length; at += 7) {
      const client = await openSocket(hub, { token: 'bob' });
      client.socket.send(bytes.subarray(0, at));
      client.socket.send(bytes.subarray(at));
      await waitFor(() => client.records().length === 2);
      expect(client.records()).toEqual([{}, { type: 3, invocationId: '1', result: replay(0) }]);
      client.socket.close();
      await waitFor(client.isClosed);
    }
  });

  it('replays what a connection missed in the groups that it has from its start', async () => {
    const hub = await startTestHub({ groupsOf: ({ subject }) => [`room:${subject}`] });
    hub.log.say('ada', 3);
    const since = encodeURIComponent(new Date(Date.now() - 1_000).toISOString());
    const client = await openSocket(hub, { query: `&since=${since}` });
    client.send(handshake);
    await waitFor(() => client.records().length === 5);
    expect(client.records().slice(1)).toEqual([
      { type: 1, target: 'Said', arguments: ['ada', 0] },
      { type: 1, target: 'Said', arguments: ['ada', 1] },
      { type: 1, target: 'Said', arguments: ['ada', 2] },
      { type: 1, target: 'Replayed', arguments: [3, true] },
    ]);
  });

  it('says when it cannot replay everything', async () => {
    const hub = await startTestHub({ limits: { replaySignals: 100 } });
    hub.log.say('b', 130);
    const { connection, said } = await connectClient(hub.url);
    const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
    expect(await connection.invoke('Enter', 'b', minutesAgo(1))).toEqual(replay(100, false));
    expect(said.map(([, n]) => n)).toEqual(Array.from({ length: 100 }, (_, n) => n));
    expect(await connection.invoke('Enter', 'c', minutesAgo(24 * 60 + 1))).toEqual(replay(0, false));
    expect(await connection.invoke('Enter', 'd', minutesAgo(-60))).toEqual(replay(0));
  });

  it('runs one replay of a user at a time; those of other users go on', async () => {
    const hub = await startTestHub();
    hub.log.say('b', 3);
    const { readKept } = hub.log.source;
    const release = Promise.withResolvers<void>();
    const reads: string[] = [];
    hub.log.source.readKept = async (search) => {
      reads.push(search.key ?? '');
      if (search.key === 'slow') await release.promise;
      return await readKept(search);
    };
    const since = new Date(Date.now() - 60_000).toISOString();
    const [one, two, leaving, bob] = [
      await connectClient(hub.url),
      await connectClient(hub.url),
      await connectClient(hub.url),
      await connectClient(hub.url, { token: 'bob' }),
    ];
    const slow = one.connection.invoke('Enter', 'slow', since);
    await waitFor(() => reads.length === 1);
    const waiting = two.connection.invoke('Enter', 'b', since);
    const left = leaving.connection.invoke('Enter', 'c', since).catch(() => 'left');
    expect(await bob.connection.invoke('Enter', 'b', since)).toEqual(replay(3));
    await leaving.connection.stop();
    expect(await left).toBe('left');
    await waitFor(async () => {
      const metrics = await hub.runtime.telemetry.registry.metrics();
      return /hub_connections\{hub="\/hubs\/rooms"\} 3\n/.test(metrics);
    });
    expect(reads).toEqual(['slow', 'b']);
    release.resolve();
    expect(await slow).toEqual(replay(0));
    expect(await waiting).toEqual(replay(3));
    expect(two.said).toEqual(bob.said);
    expect(reads).not.toContain('c');
  });

  it('sends a signal of several groups once, and dissolves a group that ends', async () => {
    const hub = await startTestHub();
    hub.log.signalsOf = async (events) =>
      events.map(({ kind, key, data }) => ({
        target: kind,
        arguments: [key, Number(data)],
        groups: ['room:a', 'room:b'],
        ...(key === 'last' && { endsGroup: 'room:a' }),
      }));
    const both = await connectClient(hub.url);
    const one = await connectClient(hub.url);
    for (const room of ['a', 'b']) await both.connection.invoke('Enter', room);
    await one.connection.invoke('Enter', 'a');
    hub.log.say('x');
    hub.log.say('last');
    hub.log.say('y');
    hub.log.notify();
    await waitFor(() => both.said.length === 3);
    expect(both.said.map(([key]) => key)).toEqual(['x', 'last', 'y']);
    expect(one.said.map(([key]) => key)).toEqual(['x', 'last']);
  });

  it('pings every ten seconds, and closes a connection that is silent for thirty', async () => {
    const timing = manualTiming(Date.now());
    const hub = await startTestHub({ timing });
    const client = await openSocket(hub);
    client.send(handshake);
    await waitFor(() => client.records().length === 1);
    await pass(timing, 29_000);
    await waitFor(() => client.records().length === 3);
    expect(client.records().slice(1)).toEqual([{ type: 6 }, { type: 6 }]);
    await pass(timing, 1_500);
    await waitFor(client.isClosed);
    expect(client.records().at(-1)).toEqual({
      type: 7,
      error: 'The client is silent.',
      allowReconnect: true,
    });
  });

  it('ends a held poll after 25 s, and forgets a client that does not poll for 15 s', async () => {
    const timing = manualTiming(Date.now());
    const hub = await startTestHub({ timing });
    const id = `?id=${await negotiate(hub)}`;
    expect(await ask(hub, 'GET', id)).toEqual({ status: 200, text: '' });
    expect(await ask(hub, 'POST', id, { body: '{"protocol":"json","version":1}\u001e' })).toMatchObject({
      status: 200,
    });
    expect(await ask(hub, 'GET', id)).toEqual({ status: 200, text: '{}\u001e' });
    const held = ask(hub, 'GET', id);
    const ended = { is: false };
    void held.then(() => {
      ended.is = true;
    });
    await waitFor(() => hub.polls.count === 3);
    await pass(timing, 24_000);
    expect(ended.is).toBe(false);
    await pass(timing, 1_500);
    expect(await held).toEqual({ status: 200, text: '' });
    await pass(timing, 16_000);
    expect(await ask(hub, 'GET', id)).toMatchObject({ status: 204 });
    await pass(timing, 16_000);
    expect(await ask(hub, 'GET', id)).toMatchObject({ status: 404 });
  });

  it('judges subscriptions every minute, once for callers alike', async () => {
    const timing = manualTiming(Date.now());
    const door = { isOpen: true };
    const hub = await startTestHub({
      timing,
      limits: { clientTimeoutMs: 1e9 },
      judge: async () => {
        if (!door.isOpen) throw new AppError('not_found', 'ROOM_NOT_FOUND', 'The room is not known.');
      },
    });
    const clients = [await openSocket(hub), await openSocket(hub)];
    for (const client of clients) client.send(handshake, { type: 1, target: 'Enter', arguments: ['b'] });
    await waitFor(() => hub.judged.count === 2);
    await pass(timing, 60_500);
    await waitFor(() => hub.judged.count === 3);
    expect(clients.some((client) => client.isClosed())).toBe(false);
    door.isOpen = false;
    await pass(timing, 60_500);
    for (const client of clients) {
      await waitFor(client.isClosed);
      const error = 'Unauthorized: The room is not known.';
      expect(client.records().at(-1)).toEqual({ type: 7, error, allowReconnect: true });
    }
  });

  it('closes its connections when it stops, and lets clients reconnect', async () => {
    const hub = await startTestHub();
    const client = await openSocket(hub);
    client.send(handshake);
    await waitFor(() => client.records().length === 1);
    await hub.server.stop();
    await waitFor(client.isClosed);
    expect(client.records().at(-1)).toEqual({
      type: 7,
      error: 'The replica is stopping.',
      allowReconnect: true,
    });
    expect(await ask(hub, 'POST', '/negotiate')).toMatchObject({ status: 503 });
  });
});
