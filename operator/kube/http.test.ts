import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ManualTiming, manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type ApiRequest, guarded } from './api.ts';
import { NotLeader } from './errors.ts';
import { HttpApi, type HttpApiOptions } from './http.ts';
import { type ApiServer, startApiServer } from './testing/api-server.ts';
import { configMaps, credentialsFor, make, put, testMetrics, widgets } from './testing/fixtures.ts';

let server: ApiServer;
let timing: ManualTiming;
let apis: HttpApi[];

beforeEach(async () => {
  server = await startApiServer();
  timing = manualTiming();
  timing.chance = 0;
  apis = [];
  put(server.state, widgets, make(widgets, 'one'));
});

afterEach(async () => {
  for (const api of apis) await api.close();
  await server.close();
});

function open(options: Partial<HttpApiOptions> = {}): HttpApi {
  const { metrics } = testMetrics();
  const api = new HttpApi({ credentials: credentialsFor(server.url), timing, metrics, ...options });
  apis.push(api);
  return api;
}

const getOne: ApiRequest = { verb: 'get', resource: widgets, namespace: 'acme', name: 'one' };
const createTwo: ApiRequest = {
  verb: 'create',
  resource: widgets,
  namespace: 'acme',
  body: make(widgets, 'two'),
};

function arrived(count: number): Promise<true> {
  return waitFor(() => server.requests.length >= count, { what: `${count} arrivals` });
}

describe('connections', () => {
  test('are shared: sequential calls use one or two, concurrent calls at most eight', async () => {
    const api = open({ rate: { perSecond: 1, burst: 1_000 } });
    for (let call = 0; call < 30; call += 1) await api.call(getOne);
    // a call may start before the connection of the previous one is released
    expect(new Set(server.requests.map(({ port }) => port)).size).toBeLessThanOrEqual(2);
    await Promise.all(Array.from({ length: 60 }, () => api.call(getOne)));
    expect(new Set(server.requests.map(({ port }) => port)).size).toBeLessThanOrEqual(8);
  });

  test('are replaced when the credentials name another server', async () => {
    const other = await startApiServer();
    let url = server.url;
    const api = open({ credentials: { read: () => Promise.resolve({ server: url }) } });
    await api.call(getOne);
    url = other.url;
    await api.call(getOne);
    await timing.advance(61_000);
    await expect(api.call(getOne)).rejects.toMatchObject({ reason: 'NotFound' });
    expect([server.requests.length, other.requests.length]).toEqual([2, 1]);
    await other.close();
  });
});

describe('a guarded write', () => {
  test('is not sent when the guard refuses while it waits for a connection', async () => {
    const answers: (() => void)[] = [];
    server.intercept = () =>
      new Promise((resolve) => {
        answers.push(() => resolve(undefined));
      });
    let leads = true;
    const fenced = guarded(open({ rate: { perSecond: 1, burst: 1_000 } }), () => {
      if (leads) return 10_000;
      throw new NotLeader();
    });
    const writes = Array.from({ length: 9 }, (_, n) =>
      fenced.call({ ...createTwo, body: make(widgets, `w${n}`) }).then(
        () => 'written',
        (error: unknown) => error,
      ),
    );
    // eight connections are in use; the ninth call waits
    await arrived(8);
    leads = false;
    for (const answer of answers) answer();
    const outcomes = await Promise.all(writes);
    expect(outcomes.filter((outcome) => outcome === 'written')).toHaveLength(8);
    expect(outcomes.filter((outcome) => outcome instanceof NotLeader)).toHaveLength(1);
    expect(server.requests).toHaveLength(8);
  });
});

describe('a refusal', () => {
  test('names verb and resource', async () => {
    server.intercept = () => ({ status: 403, reason: 'Forbidden' });
    const api = open();
    await expect(api.call({ ...createTwo, subresource: 'status' })).rejects.toMatchObject({
      reason: 'Forbidden',
      kind: 'forbidden',
      message: 'create widgets.test.dev/status acme: Forbidden',
    });
    await expect(api.call({ ...getOne, resource: configMaps })).rejects.toThrow('get configmaps acme/one');
  });

  test.each([
    [409, 'AlreadyExists', 'AlreadyExists'],
    [409, 'Conflict', 'Conflict'],
    [410, 'Expired', 'Gone'],
    [422, 'Invalid', 'Invalid'],
    [404, 'NotFound', 'NotFound'],
    [500, 'InternalError', 'Internal'],
  ])('with status %i and reason %s becomes %s and is not retried', async (status, sent, reason) => {
    server.intercept = () => ({ status, reason: sent });
    await expect(open().call(getOne)).rejects.toMatchObject({ reason, status });
    expect(server.requests).toHaveLength(1);
  });
});

describe('Retry-After', () => {
  test.each([429, 503])('of a %i is honoured for reads and writes', async (status) => {
    const times: number[] = [];
    server.intercept = () => {
      times.push(timing.monotonicMs());
      return times.length <= 2 ? { status, headers: { 'retry-after': '3' } } : undefined;
    };
    const done = open().call(createTwo);
    await arrived(1);
    for (const count of [2, 3]) {
      // the wait begins when the refusal has arrived
      await waitFor(async () => {
        await timing.advance(50);
        return server.requests.length >= count;
      });
    }
    await expect(done).resolves.toMatchObject({ kind: 'Widget' });
    const [first = 0, second = 0, third = 0] = times;
    expect(second - first).toBeGreaterThanOrEqual(3_000);
    expect(third - second).toBeGreaterThanOrEqual(3_000);
  });

  test('as a date is understood', async () => {
    const date = new Date(timing.nowMs() + 4_000).toUTCString();
    server.intercept = () => ({ status: 429, headers: { 'retry-after': date } });
    await expect(open().call({ ...getOne, retries: 0 })).rejects.toMatchObject({ retryAfterMs: 4_000 });
  });

  test('above the limit is returned with the refusal', async () => {
    server.intercept = () => ({ status: 429, reason: 'TooManyRequests', headers: { 'retry-after': '120' } });
    await expect(open().call(getOne)).rejects.toMatchObject({
      reason: 'TooManyRequests',
      retryAfterMs: 120_000,
    });
    expect(server.requests).toHaveLength(1);
  });

  test('is honoured a limited number of times', async () => {
    server.intercept = () => ({ status: 429, headers: { 'retry-after': '1' } });
    const done = open().call(getOne);
    const failed = expect(done).rejects.toMatchObject({ status: 429 });
    await waitFor(async () => {
      await timing.advance(500);
      return server.requests.length >= 6;
    });
    await failed;
    expect(server.requests).toHaveLength(6);
  });
});

describe('a connection that breaks', () => {
  test('causes a retry of a read', async () => {
    server.intercept = () => (server.requests.length < 3 ? 'reset' : undefined);
    const done = open().call(getOne);
    await waitFor(async () => {
      await timing.advance(200);
      return server.requests.length >= 3;
    });
    await expect(done).resolves.toMatchObject({ metadata: { name: 'one' } });
  });

  test('causes no retry of a write', async () => {
    server.intercept = () => 'reset-after';
    await expect(open().call(createTwo)).rejects.toMatchObject({ reason: 'Network', kind: 'unavailable' });
    expect(server.requests).toHaveLength(1);
  });

  test('by silence ends with the timeout of one attempt', async () => {
    server.intercept = () => 'hang';
    const done = expect(open().call(createTwo)).rejects.toThrow('no answer within 30000 ms');
    await arrived(1);
    await timing.advance(30_000);
    await done;
  });

  test('by a body that is not JSON is a network error', async () => {
    server.intercept = () => 'garbage';
    await expect(open().call(createTwo)).rejects.toMatchObject({ reason: 'Network' });
  });
});

describe('credentials', () => {
  test('are read again on 401, once for all waiting calls', async () => {
    let token = 'old';
    let reads = 0;
    const credentials = {
      read: () => {
        reads += 1;
        return Promise.resolve({ server: server.url, authorization: `Bearer ${token}` });
      },
    };
    const api = open({ credentials });
    await api.call(getOne);
    token = 'new';
    server.intercept = ({ headers }) =>
      headers.authorization === 'Bearer new' ? undefined : { status: 401, reason: 'Unauthorized' };
    await Promise.all([api.call(getOne), api.call(getOne), api.call(getOne)]);
    expect(reads).toBeLessThanOrEqual(4);
  });

  test('that stay refused are an error after one retry', async () => {
    server.intercept = () => ({ status: 401, reason: 'Unauthorized' });
    await expect(open().call({ ...getOne, retries: 0 })).rejects.toMatchObject({ reason: 'Unauthorized' });
    expect(server.requests).toHaveLength(2);
  });

  test('that cannot be read again stay in use; without any the call fails', async () => {
    let works = true;
    const read = () =>
      works ? Promise.resolve({ server: server.url }) : Promise.reject(new Error('no such file'));
    const api = open({ credentials: { read } });
    await api.call(getOne);
    works = false;
    await timing.advance(61_000);
    await api.call(getOne);
    await expect(open({ credentials: { read } }).call(getOne)).rejects.toMatchObject({
      kind: 'unauthenticated',
    });
  });
});

describe('the client-side rate limit', () => {
  test('delays calls in their order and lets urgent ones pass', async () => {
    const api = open({ rate: { perSecond: 10, burst: 2 } });
    const calls = Array.from({ length: 5 }, () => api.call(getOne));
    await arrived(2);
    await api.call({ ...getOne, urgent: true });
    expect(server.requests).toHaveLength(3);
    await timing.advance(101);
    await arrived(4);
    await timing.advance(200);
    await Promise.all(calls);
    expect(server.requests).toHaveLength(6);
  });

  test('gives the token of an aborted call to the next call', async () => {
    const api = open({ rate: { perSecond: 1, burst: 1 } });
    await api.call(getOne);
    const leaving = new AbortController();
    const aborted = expect(api.call({ ...getOne, signal: leaving.signal })).rejects.toThrow('left');
    const next = api.call(getOne);
    await settle();
    leaving.abort(new Error('left'));
    await aborted;
    await timing.advance(2_001);
    await next;
  });
});

describe('a guard', () => {
  test('refuses a write, and a retry after the permission has ended', async () => {
    let leads = false;
    const api = guarded(open(), () => {
      if (!leads) throw new NotLeader();
      return 5_000;
    });
    await expect(api.call(createTwo)).rejects.toBeInstanceOf(NotLeader);
    await expect(api.call(getOne)).resolves.toBeDefined();
    leads = true;
    server.intercept = () => ({ status: 429, headers: { 'retry-after': '2' } });
    const late = expect(api.call(createTwo)).rejects.toBeInstanceOf(NotLeader);
    await arrived(2);
    leads = false;
    let settled = false;
    void late.then(() => {
      settled = true;
    });
    await waitFor(async () => {
      await timing.advance(100);
      return settled;
    });
    expect(server.requests).toHaveLength(2);
  });

  test('limits the time of a write', async () => {
    server.intercept = () => 'hang';
    const late = expect(guarded(open(), () => 700).call(createTwo)).rejects.toThrow('within 700 ms');
    await arrived(1);
    await timing.advance(700);
    await late;
  });
});

test('every response and every attempt is counted', async () => {
  const { metrics, read } = testMetrics();
  const api = open({ metrics });
  await api.call(getOne);
  await api.call({ ...getOne, name: 'none' }).catch(() => undefined);
  server.intercept = () => 'reset';
  await api.call(createTwo).catch(() => undefined);
  expect(await read('rest_client_requests_total', { code: '200', method: 'GET' })).toBe(1);
  expect(await read('rest_client_requests_total', { code: '404' })).toBe(1);
  expect(await read('rest_client_requests_total', { code: '<error>', method: 'POST' })).toBe(1);
});
