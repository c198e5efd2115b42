import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import { testAuthority } from '#kit/testing/certificates.ts';
import { testInstallation } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import type { Workload } from '#kit/workload/workload.ts';
import {
  ask,
  connectClient,
  handshake,
  negotiate,
  path,
  startTestHub,
  type TestClient,
  type TestHub,
  testLog,
  transports,
} from './hub.fixture.ts';

type Authority = Awaited<ReturnType<typeof testAuthority>>;

async function workloadOf(authority: Authority, clientId: string): Promise<Workload> {
  const id = `spiffe://${testInstallation}/service/${clientId}`;
  const material = { id, expiresAtMs: Date.now() + 3_600_000, ...(await authority.issue(clientId)) };
  return {
    id,
    trustDomain: testInstallation,
    current: () => material,
    onRotate: () => () => undefined,
    stop: () => undefined,
  };
}

/** A balancer that sends each request to the replica after the one before, as the gateway. */
async function startBalancer(authority: Authority, ports: readonly number[]): Promise<string> {
  const { key, cert } = await authority.issue('service-gateway');
  let turn = 0;
  const send = (request: IncomingMessage) => {
    turn += 1;
    const port = ports[turn % ports.length] ?? 0;
    const { method, url, headers } = request;
    return httpsRequest({
      ...{ host: '127.0.0.1', port, key, cert, agent: false, rejectUnauthorized: false },
      ...{ method, path: url, headers },
    });
  };
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const outgoing = send(request);
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    request.pipe(outgoing);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex) => {
    const outgoing = send(request);
    outgoing.on('upgrade', (answer: IncomingMessage, peer: Socket) => {
      const heads = Object.entries(answer.headers).map(([name, value]) => `${name}: ${value}`);
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${heads.join('\r\n')}\r\n\r\n`);
      peer.pipe(socket).pipe(peer);
      peer.on('error', () => socket.destroy());
      socket.on('error', () => peer.destroy());
    });
    outgoing.on('response', () => socket.destroy());
    outgoing.on('error', () => socket.destroy());
    outgoing.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function startReplicas() {
  const authority = await testAuthority();
  const log = testLog();
  const start = async () => {
    const workload = await workloadOf(authority, 'service-rooms');
    return startTestHub({ log, https: await authority.identity('service-rooms'), workload });
  };
  const replicas = [await start(), await start()] as const;
  const origin = await startBalancer(
    authority,
    replicas.map(({ port }) => port),
  );
  const front: TestHub = { ...replicas[0], url: `${origin}${path}` };
  return { authority, log, replicas, front };
}

describe('two replicas behind a balancer that sends each request elsewhere', { timeout: 30_000 }, () => {
  it.each(transports)('serve clients over %s', async (_name, transport) => {
    const { front, log } = await startReplicas();
    const clients: TestClient[] = [];
    for (let n = 0; n < 6; n += 1)
      clients.push(await connectClient(front.url, { transport, token: `user${'abcdef'[n]}` }));
    for (const { connection } of clients) {
      expect(await connection.invoke('Enter', 'b')).toEqual({ replayed: 0, complete: true });
    }
    for (let round = 1; round <= 5; round += 1) {
      log.say('b', 3);
      log.notify();
      await waitFor(() => clients.every(({ said }) => said.length === 3 * round));
    }
    const numbers = Array.from({ length: 15 }, (_, n) => n);
    for (const { said } of clients) expect(said.map(([, n]) => n)).toEqual(numbers);
    for (const { connection } of clients) await connection.stop();
  });

  it('lose nothing when one of them ends: clients connect to the other one and ask since', async () => {
    const { authority, front, log, replicas } = await startReplicas();
    const first = await connectClient(front.url);
    // One more request, so that the next WebSocket opens at the other replica.
    await negotiate(front);
    const clients = [first, await connectClient(front.url, { token: 'bob' })];
    for (const { connection } of clients) await connection.invoke('Enter', 'b');
    log.say('b', 2);
    log.notify();
    await waitFor(() => clients.every(({ said }) => said.length === 2));
    const lastSeen = new Date().toISOString();
    await replicas[0].server.stop();
    log.say('b', 3);
    log.notify();
    await waitFor(() => clients.filter(({ closed }) => closed.count === 1).length === 1);
    await waitFor(() => clients.some(({ said }) => said.length === 5));
    const others = await startBalancer(authority, [replicas[1].port]);
    const again = await connectClient(`${others}${path}`);
    await again.connection.invoke('Enter', 'b', lastSeen);
    expect(again.said.slice(-3).map(([, n]) => n)).toEqual([2, 3, 4]);
  });

  it('answer 404 for a connection whose replica is gone, at once', async () => {
    const { front, replicas } = await startReplicas();
    const token = await negotiate(front);
    const id = `?id=${token}`;
    const opened = await ask(front, 'GET', id);
    expect(opened.status).toBe(200);
    for (const replica of replicas) {
      if (replica.port === portOf(token)) await replica.stop();
    }
    await waitFor(async () => (await ask(front, 'GET', id).catch(() => undefined))?.status === 404);
  });

  it('hand requests to their own service alone', async () => {
    const authority = await testAuthority();
    const log = testLog();
    const other = await startTestHub({
      log,
      https: await authority.identity('service-other'),
      workload: await workloadOf(authority, 'service-other'),
    });
    const hub = await startTestHub({
      log,
      https: await authority.identity('service-rooms'),
      workload: await workloadOf(authority, 'service-rooms'),
    });
    const ofOther = await startBalancer(authority, [other.port]);
    const ofHub = await startBalancer(authority, [hub.port]);
    const id = `?id=${await negotiate({ ...other, url: `${ofOther}${path}` })}`;
    expect(await ask({ ...hub, url: `${ofHub}${path}` }, 'GET', id)).toMatchObject({ status: 404 });
    expect(other.polls.count).toBe(0);
    expect(await ask({ ...other, url: `${ofOther}${path}` }, 'GET', id)).toMatchObject({ status: 200 });
  });

  it('hand nothing twice', async () => {
    const { authority, front, replicas } = await startReplicas();
    const token = await negotiate(front);
    const wrong = replicas.find(({ port }) => port !== portOf(token));
    const { key, cert } = await authority.issue('service-rooms');
    const status = await new Promise((resolve, reject) => {
      const request = httpsRequest({
        ...{ host: '127.0.0.1', port: wrong?.port, key, cert, agent: false, rejectUnauthorized: false },
        ...{ path: `${path}?id=${token}`, headers: { authorization: 'Bearer ada' } },
      });
      request.on('response', (answer) => resolve(answer.resume().statusCode));
      request.on('error', reject);
      request.end();
    });
    expect(status).toBe(404);
  });

  it('keep the order of handed polls and records', async () => {
    const { front, log } = await startReplicas();
    const id = `?id=${await negotiate(front)}`;
    await ask(front, 'GET', id);
    await ask(front, 'POST', id, { body: `${JSON.stringify(handshake)}\u001e` });
    expect((await ask(front, 'GET', id)).text).toBe('{}\u001e');
    const body = `${JSON.stringify({ type: 1, target: 'Enter', arguments: ['b'], invocationId: '1' })}\u001e`;
    await ask(front, 'POST', id, { body });
    expect((await ask(front, 'GET', id)).text).toContain('"result"');
    log.say('b', 500);
    log.notify();
    const seen: number[] = [];
    while (seen.length < 500) {
      const { text } = await ask(front, 'GET', id);
      seen.push(...[...text.matchAll(/"arguments":\["b",(\d+)\]/g)].map(([, n]) => Number(n)));
    }
    expect(seen).toEqual(Array.from({ length: 500 }, (_, n) => n));
    expect((await ask(front, 'DELETE', id)).status).toBe(202);
  });
});

/** The port in a connection token, which names the replica that issued it. */
function portOf(token: string): number {
  const [, port] = /127\.0\.0\.1",(\d+)\]/.exec(Buffer.from(token, 'base64url').toString('latin1')) ?? [];
  return Number(port);
}
