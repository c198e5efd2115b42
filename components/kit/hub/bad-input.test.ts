import { createConnection } from 'node:net';
import { HttpTransportType } from '@microsoft/signalr';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { manualTiming } from '#kit/testing/manual-timing.ts';
import { handshakeTo, openRawClient } from '#kit/testing/raw-client.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  ask,
  connectClient,
  handshake,
  negotiate,
  openSocket,
  pass,
  path,
  startTestHub,
  type TestHub,
} from './hub.fixture.ts';
import { hubLimits } from './limits.ts';

const hello = `${JSON.stringify(handshake)}\u001e`;
const enter = (room: string, id = '1') => ({ type: 1, target: 'Enter', arguments: [room], invocationId: id });

/** An open long-polling connection; returns its query. */
async function openPolls(hub: TestHub, token = 'ada'): Promise<string> {
  const id = `?id=${await negotiate(hub, token)}`;
  await ask(hub, 'GET', id, { token });
  await ask(hub, 'POST', id, { token, body: hello });
  expect(await ask(hub, 'GET', id, { token })).toEqual({ status: 200, text: '{}\u001e' });
  return id;
}

describe('callers', () => {
  it.each(['robot', 'nameless', '0'])('%s gets no connection', async (token) => {
    const hub = await startTestHub();
    expect(await ask(hub, 'POST', '/negotiate?negotiateVersion=1', { token })).toMatchObject({ status: 401 });
    const client = await openSocket(hub, { token });
    expect(client.isClosed()).toBe(true);
    expect((await fetch(`${hub.url}/negotiate?negotiateVersion=1`, { method: 'POST' })).status).toBe(401);
  });

  it('send the token in the query of a hub alone', async () => {
    const hub = await startTestHub();
    const response = await fetch(`${hub.url}/negotiate?negotiateVersion=1&access_token=ada`, {
      method: 'POST',
    });
    expect(response.status).toBe(200);
    expect(JSON.stringify(hub.runtime.lines)).not.toContain('access_token');
  });

  it('have 20 connections each', async () => {
    const hub = await startTestHub();
    const clients: Awaited<ReturnType<typeof openSocket>>[] = [];
    for (let n = 0; n < hubLimits.connectionsPerUser; n += 1) {
      const client = await openSocket(hub);
      client.send(handshake);
      clients.push(client);
    }
    await waitFor(() => clients.every((client) => client.records().length === 1));
    expect((await openSocket(hub)).isClosed()).toBe(true);
    expect(await ask(hub, 'POST', '/negotiate')).toMatchObject({ status: 429 });
    expect((await openSocket(hub, { token: 'bob' })).isClosed()).toBe(false);
    clients[0]?.socket.close();
    await waitFor(async () => (await ask(hub, 'POST', '/negotiate')).status === 200);
  });

  it('share the room of a replica', async () => {
    const hub = await startTestHub({ limits: { connectionsPerReplica: 1 } });
    await openSocket(hub);
    expect(await ask(hub, 'POST', '/negotiate', { token: 'bob' })).toMatchObject({ status: 503 });
  });
});

describe('a connection token', () => {
  it('opens a connection for 15 s, and once', async () => {
    const timing = manualTiming(Date.now());
    const hub = await startTestHub({ timing });
    const old = await negotiate(hub);
    await pass(timing, 15_500);
    expect(await ask(hub, 'GET', `?id=${old}`)).toMatchObject({ status: 404 });
    expect((await openSocket(hub, { query: `&id=${old}` })).isClosed()).toBe(true);
    const token = await negotiate(hub);
    const first = await openSocket(hub, { query: `&id=${token}` });
    expect(first.isClosed()).toBe(false);
    expect((await openSocket(hub, { query: `&id=${token}` })).isClosed()).toBe(true);
    expect(await ask(hub, 'GET', `?id=${token}`)).toMatchObject({ status: 409 });
    expect(await ask(hub, 'POST', `?id=${token}`, { body: '' })).toMatchObject({ status: 409 });
    first.socket.close();
    await waitFor(async () => (await ask(hub, 'GET', `?id=${token}`)).status === 404);
  });

  it('is worth nothing to another user, forged or absent', async () => {
    const hub = await startTestHub();
    const id = await openPolls(hub);
    // not the last character, whose trailing bits are no part of the bytes
    const forged = `${id.slice(0, -5)}${id.at(-5) === 'A' ? 'B' : 'A'}${id.slice(-4)}`;
    for (const method of ['GET', 'POST', 'DELETE']) {
      expect(await ask(hub, method, id, { token: 'bob' })).toMatchObject({ status: 404 });
      expect(await ask(hub, method, forged)).toMatchObject({ status: 404 });
      expect(await ask(hub, method, '?id=x')).toMatchObject({ status: 404 });
      expect(await ask(hub, method, '')).toMatchObject({ status: 400 });
      expect(await ask(hub, method, `${id}&${id.slice(1)}`)).toMatchObject({ status: 400 });
    }
    expect(await ask(hub, 'DELETE', id)).toMatchObject({ status: 202 });
  });
});

describe('records', () => {
  it('are awaited for 15 s', async () => {
    const timing = manualTiming(Date.now());
    const hub = await startTestHub({ timing });
    const client = await openSocket(hub);
    await pass(timing, 14_500);
    expect(client.isClosed()).toBe(false);
    await pass(timing, 1_000);
    await waitFor(client.isClosed);
    expect(client.records()).toEqual([{ error: 'The handshake did not arrive in time.' }]);
  });

  it.each([
    [{ protocol: 'json', version: 9 }, 'Only version 1 of the protocol json is supported.'],
    [{ protocol: 'messagepack', version: 1 }, 'Only the protocol json is supported.'],
    [{}, 'The handshake is malformed.'],
  ])('that open with %j are refused', async (first, error) => {
    const hub = await startTestHub();
    const client = await openSocket(hub);
    client.send(first, enter('b'));
    await waitFor(client.isClosed);
    expect(client.records()).toEqual([{ error }]);
  });

  it('have 32 KiB at most', async () => {
    const hub = await startTestHub();
    const padded = (bytes: number) => {
      const empty = JSON.stringify({ ...enter('b'), note: '' }).length;
      return { ...enter('b'), note: 'x'.repeat(bytes - empty) };
    };
    const client = await openSocket(hub);
    client.send(handshake, padded(32_768));
    await waitFor(() => client.records().length === 2);
    client.send(padded(32_769));
    await waitFor(client.isClosed);
    expect(client.records().at(-1)).toEqual({ type: 7, error: 'A record exceeds 32768 bytes.' });
    const other = await openSocket(hub);
    other.socket.send('x'.repeat(200_000));
    await waitFor(other.isClosed);
    expect(other.state.closedWith).toBe(1009);
  });

  it('do not wait in any number', async () => {
    const release = Promise.withResolvers<void>();
    const hub = await startTestHub({ judge: () => release.promise });
    const client = await openSocket(hub);
    client.send(handshake);
    for (let n = 0; n < 4; n += 1) client.send({ ...enter('b'), note: 'x'.repeat(20_000) });
    await waitFor(client.isClosed);
    release.resolve();
    expect(client.records().at(-1)).toMatchObject({ error: 'Too many invocations wait for an earlier one.' });
  });

  it('do not wait in any number, however small they are', async () => {
    const release = Promise.withResolvers<void>();
    const limits = { waitingBytes: 1024 * 1024, messageBytes: 1024 * 1024 };
    const hub = await startTestHub({ judge: () => release.promise, limits });
    const client = await openSocket(hub);
    client.send(handshake, enter('a'));
    client.send(...Array.from({ length: hubLimits.waitingInvocations }, () => enter('b')));
    await ask(hub, 'POST', '/negotiate');
    expect(client.isClosed()).toBe(false);
    client.send(enter('b'));
    await waitFor(client.isClosed);
    release.resolve();
    expect(client.records().at(-1)).toMatchObject({ error: 'Too many invocations wait for an earlier one.' });
  });

  it('are never the end of the process', async () => {
    const hub = await startTestHub();
    const pieces = fc.array(
      fc.oneof(
        fc.constantFrom(hello, '\u001e', '{"type":6}\u001e', `${JSON.stringify(enter('b'))}\u001e`),
        fc.json().map((text) => `${text}\u001e`),
        fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
      ),
      { maxLength: 12 },
    );
    await fc.assert(
      fc.asyncProperty(pieces, async (messages) => {
        const client = await openSocket(hub);
        for (const message of messages) client.socket.send(message);
        client.socket.close();
        await waitFor(client.isClosed);
      }),
      { numRuns: 60 },
    );
    const { connection } = await connectClient(hub.url);
    expect(await connection.invoke('Enter', 'b')).toEqual({ replayed: 0, complete: true });
    expect(hub.runtime.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('ask for 100 groups at most', async () => {
    const hub = await startTestHub();
    const { connection } = await connectClient(hub.url);
    for (let n = 0; n < hubLimits.groupsPerConnection; n += 1) await connection.invoke('Enter', `room${n}`);
    await expect(connection.invoke('Enter', 'another')).rejects.toThrow(
      'The connection has too many subscriptions.',
    );
    await connection.invoke('Enter', 'room7');
    await connection.invoke('Leave', 'room7');
    await connection.invoke('Enter', 'another');
  });
});

describe('requests', () => {
  it('are no upgrade unless they are a handshake, at the path of the hub', async () => {
    const hub = await startTestHub();
    const wrong = [
      handshakeTo(`${path}?access_token=ada`, { 'sec-websocket-version': '8' }),
      handshakeTo(`${path}?access_token=ada`, { 'sec-websocket-key': 'short' }),
      handshakeTo(`${path}?access_token=ada`, { 'content-length': '5' }),
      handshakeTo(`${path}/negotiate?access_token=ada`),
      handshakeTo('/health?access_token=ada'),
    ];
    for (const bytes of wrong) {
      const client = openRawClient(hub.port);
      client.write(`${bytes}GET /alive HTTP/1.1\r\nhost: h\r\n\r\n`);
      await waitFor(client.isClosed);
      expect(client.text()).toMatch(/^HTTP\/1\.1 4\d\d /);
      expect(client.text().match(/HTTP\/1\.1 /g)).toHaveLength(1);
    }
  });

  it('behind an unanswered request of their connection are not upgraded', async () => {
    const hub = await startTestHub();
    const id = await openPolls(hub);
    const client = openRawClient(hub.port);
    client.write(
      `GET ${path}${id}&access_token=ada HTTP/1.1\r\nhost: h\r\n\r\n${handshakeTo(`${path}?access_token=ada`)}`,
    );
    await waitFor(() => hub.polls.count > 2);
    hub.log.say('x');
    await ask(hub, 'DELETE', id);
    await waitFor(client.isClosed);
    expect(client.text()).not.toContain('101 Switching');
  });

  it('that overtake a poll end it without losing records', async () => {
    const hub = await startTestHub();
    const id = await openPolls(hub);
    const first = ask(hub, 'GET', id);
    await waitFor(() => hub.polls.count === 3);
    const second = ask(hub, 'GET', id);
    expect(await first).toEqual({ status: 200, text: '' });
    await ask(hub, 'POST', id, { body: `${JSON.stringify(enter('b'))}\u001e` });
    expect((await second).text).toContain('"result"');
  });

  it('whose client left get their records with the next poll', async () => {
    const hub = await startTestHub();
    const id = await openPolls(hub);
    const lost = createConnection(hub.port, '127.0.0.1');
    onTestFinished(() => void lost.destroy());
    lost.write(`GET ${path}${id}&access_token=ada HTTP/1.1\r\nhost: h\r\n\r\n`);
    await waitFor(() => hub.polls.count === 3);
    lost.destroy();
    await ask(hub, 'POST', id, { body: `${JSON.stringify(enter('b'))}\u001e` });
    expect((await ask(hub, 'GET', id)).text).toContain('"result"');
  });
});

describe('a client that reads slowly', { timeout: 30_000 }, () => {
  const start = async (isReplaceable: boolean, characters = 150) => {
    const hub = await startTestHub();
    const height = { target: 'Height', arguments: [1], groups: ['room:b'] };
    hub.log.signalsOf = async (events) =>
      events.map(({ key, data }) => ({
        target: 'Said',
        arguments: [key, Number(data), 'x'.repeat(characters)],
        groups: [`room:${key}`],
        ...(isReplaceable && { instead: height }),
      }));
    return hub;
  };

  it('gets what replaces signals over 256 KiB, once', async () => {
    const hub = await start(true);
    const id = await openPolls(hub);
    await ask(hub, 'POST', id, { body: `${JSON.stringify(enter('b'))}\u001e` });
    hub.log.say('b', 10_000);
    hub.log.notify();
    const reader = await connectClient(hub.url, { token: 'bob' });
    await reader.connection.invoke('Enter', 'b', new Date(Date.now() + 60_000).toISOString());
    hub.log.say('b');
    hub.log.notify();
    await waitFor(() => reader.said.length > 0);
    const { text } = await ask(hub, 'GET', id);
    expect(text.length).toBeGreaterThan(200_000);
    expect(text.length).toBeLessThan(hubLimits.slowBytes + 1_000);
    expect(text.match(/"Height"/g)).toHaveLength(1);
    expect(text.indexOf('"Height"')).toBeGreaterThan(text.lastIndexOf('"Said"'));
  });

  it('is closed over 1 MiB, and may reconnect', async () => {
    const hub = await start(false);
    const id = await openPolls(hub);
    await ask(hub, 'POST', id, { body: `${JSON.stringify(enter('b'))}\u001e` });
    hub.log.say('b', 10_000);
    hub.log.notify();
    await waitFor(async () => (await ask(hub, 'POST', id, { body: '' })).status === 404);
    const { text } = await ask(hub, 'GET', id);
    expect(text.length).toBeLessThan(hubLimits.closeBytes + hubLimits.batchBytes);
    expect(
      text.endsWith('{"type":7,"error":"The client reads too slowly.","allowReconnect":true}\u001e'),
    ).toBe(true);
    expect(await ask(hub, 'GET', id)).toMatchObject({ status: 204 });
  });

  it('is closed over a WebSocket too, while others get everything', async () => {
    const hub = await start(false, 8_000);
    const silent = openRawClient(hub.port);
    silent.write(handshakeTo(`${path}?access_token=ada`));
    await waitFor(() => silent.text().includes('101'));
    const record = Buffer.from(`${hello}${JSON.stringify(enter('b'))}\u001e`);
    const mask = Buffer.alloc(4);
    silent.socket.write(
      Buffer.concat([Buffer.from([0x81, 0xfe]), Buffer.from([0, record.length]), mask, record]),
    );
    await waitFor(() => silent.text().includes('"result"'));
    silent.socket.pause();
    const reader = await connectClient(hub.url, { token: 'bob', transport: HttpTransportType.WebSockets });
    await reader.connection.invoke('Enter', 'b');
    for (let round = 1; round <= 4; round += 1) {
      hub.log.say('b', 800);
      hub.log.notify();
      await waitFor(() => reader.said.length === round * 800);
    }
    expect(reader.closed.count).toBe(0);
    await waitFor(async () => {
      const metrics = await hub.runtime.telemetry.registry.metrics();
      return metrics.includes('hub_connections{hub="/hubs/rooms"} 1');
    });
  });
});
