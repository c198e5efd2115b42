import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { badHandshakes } from '#kit/testing/handshakes.ts';
import { handshakeTo, openRawClient, type RawClient } from '#kit/testing/raw-client.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type RawConnection, type RawService, secret, startRawService } from './testing/raw-service.ts';
import { type ServiceAnswer, serviceAnswers } from './testing/service-answers.ts';
import { createTestWorld, spiffeId, type TestGateway, type TestWorld } from './testing/world.ts';

const hub = '/hubs/register/x';

const behind = [
  'GET /api/internal/x HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n',
  'POST /api/internal/inbox HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}',
].join('');

const ended = (client: RawClient) => waitFor(() => client.isClosed(), { what: 'the end of the connection' });
const statusOf = (client: RawClient) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(client.text())?.[1]);
const heads = (client: RawClient) => client.text().match(/HTTP\/1\.1 \d{3} /g)?.length;

describe('a gateway before a service that serves every request', () => {
  let world: TestWorld;
  let service: RawService;
  let gateway: TestGateway;
  let answer: ServiceAnswer | undefined;

  const writeParts = async (connection: RawConnection) => {
    for (const part of answer?.parts(connection) ?? []) {
      await new Promise((resolve) => connection.socket.write(part, 'latin1', resolve));
    }
  };

  beforeAll(async () => {
    world = await createTestWorld();
    const identity = await world.authority.issue(spiffeId('service-register'));
    service = await startRawService(identity, (connection) => void writeParts(connection));
    const settings = { CHANCERY_GATEWAY_ANSWER_SECONDS: '1' };
    gateway = await world.startGateway({ register: service.address }, settings);
  });
  afterAll(async () => {
    await world.stop();
    await service.stop();
  });

  it.each(badHandshakes(hub))(
    'refuses a handshake with $name, and serves nothing after it',
    async ({ bytes, status }) => {
      const before = service.connections.length;
      const client = openRawClient(gateway.port);
      client.write(`${bytes}${behind}`);
      await ended(client);
      expect([statusOf(client), heads(client)]).toEqual([status, 1]);
      expect(client.text()).toMatch(/\r\nconnection: close/i);
      if (status === 426) expect(client.text()).toMatch(/\r\nsec-websocket-version: 13\r\n/i);
      if (!bytes.startsWith('HEAD')) expect(client.text()).toMatch(/"traceId":"[0-9a-f]{32}"/);
      expect(service.connections.length).toBe(before);
    },
  );

  it('refuses bytes right after a handshake before the service receives it', async () => {
    const before = service.connections.length;
    const client = openRawClient(gateway.port);
    client.write(`${handshakeTo(hub)}${behind}`);
    await ended(client);
    expect([statusOf(client), heads(client)]).toEqual([400, 1]);
    expect(service.connections.length).toBe(before);
  });

  it('refuses bytes that arrive before the answer, and closes both connections', async () => {
    answer = { name: 'nothing', parts: () => [], statuses: [] };
    const client = openRawClient(gateway.port);
    const before = service.connections.length;
    client.write(handshakeTo(hub));
    const connection = await waitFor(() => {
      const found = service.connections[before];
      return found?.received.endsWith('\r\n\r\n') ? found : undefined;
    });
    client.write(behind);
    await ended(client);
    expect([statusOf(client), heads(client)]).toEqual([400, 1]);
    await waitFor(() => connection.socket.destroyed, { what: 'the end at the service' });
    expect(connection.received).not.toContain('internal');
  });

  it.each(serviceAnswers)('forwards nothing after an answer: $name', async (given) => {
    answer = given;
    const before = service.connections.length;
    const client = openRawClient(gateway.port);
    client.write(handshakeTo(hub));
    await waitFor(() => client.text().includes('\r\n\r\n') || client.isClosed(), { what: 'an answer' });
    const status = statusOf(client);
    expect(given.statuses).toContain(status);
    client.write(behind);
    if (status === 101) {
      // the service has agreed: what follows belongs to the WebSocket
      await waitFor(() => client.text().includes(secret), { what: 'the tunnel' });
      client.socket.destroy();
    } else {
      await ended(client);
      expect(client.text()).toMatch(/\r\nconnection: close/i);
      expect(client.text()).not.toContain(secret);
      expect(heads(client)).toBe(1);
    }
    const connection = service.connections[before];
    await waitFor(() => connection?.socket.destroyed, { what: 'the end at the service' });
    expect(service.connections.length).toBe(before + 1);
    const requests = connection?.received.match(/ HTTP\/1\.1\r\n/g)?.length;
    expect(requests).toBe(status === 101 ? 3 : 1);
  });
});
