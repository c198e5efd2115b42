import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { badHandshakes } from '#kit/testing/handshakes.ts';
import { handshakeTo, openRawClient, type RawClient } from '#kit/testing/raw-client.ts';
import { createOperator } from '../harness/operator.ts';
import { mintWithSvid } from '../harness/service-token.ts';
import { installation } from '../harness/shared-system.ts';
import { until } from '../harness/wait.ts';

const ended = (client: RawClient) =>
  until('the end of the connection', 10_000, async () => client.isClosed() || undefined);
const statusOf = (client: RawClient) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(client.text())?.[1]);

describe('an installation', () => {
  const here = installation(['--processes']);
  const portOf = () => Number(new URL(here.state.gatewayUrl).port);

  test('serves its document whole or not at all, from the start on', async () => {
    const whole = await until('the merged document', 30_000, async () => {
      const answer = await here.api.send('GET', '/openapi.json');
      if (answer.status === 200) return answer;
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1']);
      return undefined;
    });
    const paths = Object.keys((whole.body as { paths: object }).paths);
    for (const path of [
      '/health',
      '/api/auth/me',
      '/api/v1/wallets',
      '/api/registers',
      '/api/v1/transactions/validate',
    ])
      expect(paths).toContain(path);
  });

  test.each([
    ['as it was reported', 'Connection: Upgrade\r\nUpgrade: websocket'],
    [
      'with a sound handshake',
      'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13',
    ],
    ['as h2c', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk'],
  ])('gives no document of a service behind an upgrade %s', async (_name, headers) => {
    for (const path of ['/hubs/tenant/x', '/hubs/register/x', '/hubs/wallet/x', '/api/me/x']) {
      const first = `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n`;
      const client = openRawClient(portOf());
      client.write(`${first}GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      await until('an answer', 10_000, async () => client.text().includes('\r\n\r\n') || undefined);
      client.write('GET /openapi.json HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      await ended(client);
      expect([400, 401, 404]).toContain(statusOf(client));
      expect(client.text(), path).not.toContain('api/internal');
    }
  });

  test.each(badHandshakes('/hubs/tenant/x'))(
    'gives nothing internal behind a handshake with $name',
    async ({ bytes }) => {
      const document = 'GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n';
      const internal = 'GET /api/internal/organizations HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
      const client = openRawClient(portOf());
      client.write(`${bytes}${document}${internal}`);
      await until('an answer', 10_000, async () => client.text().includes('\r\n\r\n') || undefined);
      client.write(`${document}${internal}`);
      await ended(client);
      expect(statusOf(client)).toBeGreaterThanOrEqual(400);
      // the gateway's own refusal may name the path that was asked for, and nothing else does
      expect(client.text().replaceAll(/"(?:path|instance)":"[^"]*"/g, '')).not.toContain('api/internal');
    },
  );

  test('writes nothing to an inbox from behind an upgrade', async () => {
    const me = await here.api.expect(200, 'GET', '/api/auth/me', { token: here.token() });
    const { token } = await mintWithSvid(here.state, 'service-wallet');
    const entry = JSON.stringify(entryFor((me.body as { platformUserId: string }).platformUserId));
    const post = `POST /api/internal/inbox HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${entry.length}\r\nConnection: close\r\n\r\n${entry}`;
    const client = openRawClient(portOf());
    client.write(`${handshakeTo('/hubs/tenant/x')}${post}`);
    await until('an answer', 10_000, async () => client.text().includes('\r\n\r\n') || undefined);
    client.write(post);
    await ended(client);
    expect(client.text()).not.toMatch(/ 20[01] /);
    const inbox = await here.api.expect(200, 'GET', '/api/me/inbox', { token: here.token() });
    expect(JSON.stringify(inbox.body)).not.toContain('from behind');
  });

  test("refuses its gateway on internal routes, with a service's own token too", async () => {
    const me = await here.api.expect(200, 'GET', '/api/auth/me', { token: here.token() });
    const entry = entryFor((me.body as { platformUserId: string }).platformUserId);
    const { call } = createOperator(here.state);
    const line = 'POST /api/internal/inbox';
    const by = (certificate: string, token: string | undefined) =>
      call('tenant', line, entry, { certificate, token });
    expect((await by('service-gateway', 'service-wallet')).status).toBe(403);
    expect((await by('service-gateway', undefined)).status).toBe(403);
    expect((await by('service-register', 'service-wallet')).status).toBe(403);
    expect((await by('service-wallet', 'service-wallet')).status).toBe(201);
  });
});

function entryFor(platformUserId: string) {
  return {
    platformUserId,
    category: 'System',
    severity: 'Info',
    correlationKey: 'upgrade-bypass',
    title: 'from behind',
    sourceEventId: randomUUID(),
  };
}
