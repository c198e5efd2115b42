import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { waitFor } from '#kit/testing/wait.ts';
import { NotLeader } from '../kube/errors.ts';
import { type HttpsService, startHttpsService } from './testing/https-service.ts';

let server: HttpsService;

beforeEach(async () => {
  server = await startHttpsService();
});

afterEach(() => server.close());

const anything = z.unknown();
const get = { method: 'GET', path: '/things?secret=1' } as const;
const post = { method: 'POST', path: '/things', body: { name: 'é' } } as const;

describe('a call', () => {
  test('sends token and body and returns the parsed response', async () => {
    const service = await server.connect();
    server.reply = () => ({ status: 201, body: { id: 7, more: true } });
    expect(await service.call(post, z.object({ id: z.int() }))).toEqual({ id: 7 });
    expect(server.received).toMatchObject([
      { method: 'POST', path: '/things', body: { name: 'é' }, authorization: 'Bearer token' },
    ]);
  });

  test('shares connections with other calls', async () => {
    const service = await server.connect();
    for (let count = 0; count < 5; count += 1) await service.call(get, anything);
    expect(new Set(server.received.map(({ port }) => port)).size).toBe(1);
  });

  test('is retried when its persistent connection was closed meanwhile', async () => {
    const service = await server.connect();
    await service.call(get, anything);
    let resets = 1;
    server.reply = () => {
      resets -= 1;
      return resets >= 0 ? 'reset' : { status: 200, body: {} };
    };
    await service.call(post, anything);
    expect(server.received).toHaveLength(3);
  });

  test('uses the rotated identity for new connections', async () => {
    const identity = await server.authority.identity('service-operator');
    const service = await server.connect({ identity });
    await service.call(get, anything);
    identity.rotate(await server.authority.issue('service-operator'));
    await service.call(get, anything);
    expect(new Set(server.received.map(({ port }) => port)).size).toBe(2);
  });

  test('that changes something calls the guard, and a read does not', async () => {
    const guard = () => {
      throw new NotLeader();
    };
    const service = await server.connect({ guard });
    await expect(service.call(post, anything)).rejects.toMatchObject({ code: 'NOT_LEADER' });
    expect(server.received).toEqual([]);
    await service.call(get, anything);
    expect(server.received).toHaveLength(1);
  });

  test('is not sent when the guard refuses after the connection is established', async () => {
    let callCount = 0;
    const guard = () => {
      callCount += 1;
      if (callCount > 1) throw new NotLeader();
      return 1_000;
    };
    const service = await server.connect({ guard });
    await expect(service.call(post, anything)).rejects.toMatchObject({ code: 'NOT_LEADER' });
    expect([callCount, server.received]).toEqual([2, []]);
  });

  test('is not sent when the guard refuses after another call has released the connection', async () => {
    let leads = true;
    const guard = () => {
      if (leads) return 10_000;
      throw new NotLeader();
    };
    const service = await server.connect({ guard });
    const answers: (() => void)[] = [];
    server.reply = () => new Promise((resolve) => answers.push(() => resolve({ status: 200, body: {} })));
    const calls = Array.from({ length: 9 }, () => service.call(post, anything).then(() => 'sent', String));
    // eight connections are in use; the ninth call waits
    await waitFor(() => answers.length === 8, { what: 'eight calls' });
    leads = false;
    for (const answer of answers) answer();
    const outcomes = await Promise.all(calls);
    expect(outcomes.filter((outcome) => outcome === 'sent')).toHaveLength(8);
    expect(server.received).toHaveLength(8);
  });

  test('ends with its timeout', async () => {
    const service = await server.connect({ guard: () => 50.5 });
    server.reply = () => 'hang';
    await expect(service.call(post, anything)).rejects.toMatchObject({
      code: 'SERVICE_UNREACHABLE',
      message: expect.stringContaining('no answer within 50 ms'),
    });
  });

  test('ends with its timeout on a persistent connection too, without a retry', async () => {
    const service = await server.connect({ guard: () => 50 });
    await service.call(get, anything);
    server.reply = () => 'hang';
    await expect(service.call(post, anything)).rejects.toMatchObject({ code: 'SERVICE_UNREACHABLE' });
    expect(server.received).toHaveLength(2);
  });

  test('ends with its reconcile', async () => {
    const service = await server.connect();
    const running = new AbortController();
    server.reply = () => {
      running.abort(new Error('the reconcile is over'));
      return 'hang';
    };
    await expect(service.call({ ...get, signal: running.signal }, anything)).rejects.toThrow(
      'the reconcile is over',
    );
  });
});

describe('a response', () => {
  test.each([
    [400, 'invalid'],
    [401, 'unauthenticated'],
    [403, 'forbidden'],
    [404, 'not_found'],
    [409, 'conflict'],
    [410, 'gone'],
    [422, 'unprocessable'],
    [429, 'rate_limited'],
    [502, 'bad_gateway'],
    [503, 'unavailable'],
    [504, 'timeout'],
    [599, 'bad_gateway'],
  ])('%d is a refusal of kind %s', async (status, kind) => {
    const service = await server.connect();
    const body = { code: 'SOME_CODE', detail: 'because', organizationId: 'x' };
    server.reply = () => ({ status, body, headers: { 'retry-after': '7' } });
    await expect(service.call(get, anything)).rejects.toMatchObject({
      kind,
      code: 'SOME_CODE',
      message: 'the tenant service refused (SOME_CODE): because [GET /things]',
      members: { organizationId: 'x' },
      retryAfterSeconds: 7,
    });
  });

  test('without a body is a refusal too', async () => {
    const service = await server.connect();
    server.reply = () => ({ status: 500 });
    await expect(service.call(get, anything)).rejects.toMatchObject({
      kind: 'bad_gateway',
      code: 'SERVICE_REFUSED',
      message: 'the tenant service refused (SERVICE_REFUSED): HTTP 500 [GET /things]',
    });
  });

  test('with an unexpected body names the wrong member', async () => {
    const service = await server.connect();
    server.reply = () => ({ status: 200, body: { id: 'seven' } });
    await expect(service.call(get, z.object({ id: z.int() }))).rejects.toMatchObject({
      kind: 'bad_gateway',
      code: 'SERVICE_ANSWER_UNREADABLE',
      message: expect.stringContaining('(id: '),
    });
  });
});

describe('an untrusted server', () => {
  test('with another identity is refused', async () => {
    const impostor = await startHttpsService('service-wallet');
    const service = await impostor.connect();
    await expect(service.call(get, anything)).rejects.toMatchObject({
      kind: 'unavailable',
      code: 'SERVICE_UNREACHABLE',
      message: expect.stringContaining('service-wallet, expected spiffe://'),
    });
    expect(impostor.received).toEqual([]);
    await impostor.close();
  });

  test('of another authority is refused', async () => {
    const stranger = await startHttpsService();
    const identity = await server.authority.identity('service-operator');
    const service = await stranger.connect({ identity });
    await expect(service.call(get, anything)).rejects.toMatchObject({ code: 'SERVICE_UNREACHABLE' });
    expect(stranger.received).toEqual([]);
    await stranger.close();
  });

  test('that does not exist is unreachable', async () => {
    const service = await server.connect({ port: 1 });
    await expect(service.call(get, anything)).rejects.toMatchObject({
      message: expect.stringContaining('the tenant service cannot be reached at 127.0.0.1:1'),
    });
  });
});
