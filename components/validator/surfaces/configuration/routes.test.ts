import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { systemAdmin, TestServer, userCaller } from '../../testing/test-server.ts';
import { registerId } from '../../testing/world.ts';

const served = new TestServer();
const { world } = served;
beforeAll(async () => {
  await served.open();
  served.caller = systemAdmin;
});
afterAll(() => served.close());

const put = (patch: unknown, query = '') => served.send('PUT', `/api/admin/config${query}`, patch);
/** Restores the settings of the start. */
const undo = {
  build: { intervalMs: null, maxTransactions: null },
  mempool: { maxSize: null, maxBytes: null },
  validation: { concurrency: null },
  rateLimit: { perMinute: null },
  logLevel: null,
};
afterEach(async () => {
  served.announced.length = 0;
  Reflect.deleteProperty(served.peerClients, 'configure');
  expect((await put(undo)).statusCode).toBe(200);
  served.controlled.length = 0;
});

describe('PUT /api/admin/config', () => {
  it('returns the effective values and restores those of the start', async () => {
    const atStart = {
      build: { intervalMs: null, maxTransactions: null },
      mempool: { maxSize: 10_000, maxBytes: 64 * 1024 * 1024 },
      validation: { concurrency: 2 },
      rateLimit: { perMinute: 600 },
      logLevel: 'warn',
    };
    const patch = {
      build: { intervalMs: 50, maxTransactions: 7 },
      mempool: { maxSize: 20, maxBytes: 2 * 1024 * 1024 },
      validation: { concurrency: 1 },
      rateLimit: { perMinute: 60 },
      logLevel: 'error',
    };
    expect((await put(patch)).json()).toEqual({
      effective: patch,
      restartRequired: [],
      members: [{ validatorId: 'validator-0', reachable: true }],
    });
    expect(world.engine.buildLimits).toEqual({ intervalMs: 50, maxTransactions: 7 });
    expect(world.runtime.log.level).toBe('error');
    expect(served.controlled).toEqual([
      ['threads', 1],
      ['perMinute', 60],
    ]);
    expect((await put({ logLevel: null })).json().effective).toEqual({ ...patch, logLevel: 'warn' });
    expect((await put(undo)).json().effective).toEqual(atStart);
  });

  it('applies at once to the sizes of pools and dockets', async () => {
    await world.engine.setMode(registerId, 'Paused');
    await put({ mempool: { maxSize: 2 }, build: { maxTransactions: 1 } });
    for (const expected of [200, 200, 429]) {
      const answer = await world.submit(world.sign().text);
      expect(answer.status).toBe(expected);
    }
    expect(world.register.preview(undefined)?.transactions).toHaveLength(1);
    expect(world.register.preview(5)?.transactions).toHaveLength(1);
    await put({ mempool: { maxSize: 3 } });
    expect((await world.submit(world.sign().text)).status).toBe(200);
    await world.engine.setMode(registerId, 'Running');
    await world.register.seal(undefined, 5_000);
  });

  it.each([
    [
      'a policy',
      { consensus: { maxTransactionsPerDocket: 5 } },
      'POLICY_CONTROLLED',
      'consensus.maxTransactionsPerDocket',
    ],
    [
      'a member of a policy by itself',
      { docketBuildIntervalMs: 5 },
      'POLICY_CONTROLLED',
      'docketBuildIntervalMs',
    ],
    [
      'a member of a policy elsewhere',
      { build: { maxDocketBytes: 5 } },
      'POLICY_CONTROLLED',
      'build.maxDocketBytes',
    ],
    ['the quorum', { quorum: 1 }, 'POLICY_CONTROLLED', 'quorum'],
    ['the set', { validators: { minValidators: 1 } }, 'POLICY_CONTROLLED', 'validators.minValidators'],
    ['a setting of the start', { log: { segmentBytes: 1 } }, 'IMMUTABLE_FIELD', 'log.segmentBytes'],
    ['the identity', { validatorId: 'validator-9' }, 'IMMUTABLE_FIELD', 'validatorId'],
    ['an unknown name', { mempool: { colour: 1 } }, 'INVALID_REQUEST', 'mempool.colour'],
    ['a name of objects', { constructor: { x: 1 } }, 'INVALID_REQUEST', 'constructor.x'],
    ['too little', { mempool: { maxSize: 0 } }, 'INVALID_REQUEST', 'mempool.maxSize'],
    ['too much', { mempool: { maxBytes: 2 ** 40 } }, 'INVALID_REQUEST', 'mempool.maxBytes'],
    [
      'more threads than there are',
      { validation: { concurrency: 3 } },
      'INVALID_REQUEST',
      'validation.concurrency',
    ],
    ['half a number', { build: { intervalMs: 0.5 } }, 'INVALID_REQUEST', 'build.intervalMs'],
    ['text', { rateLimit: { perMinute: '60' } }, 'INVALID_REQUEST', 'rateLimit.perMinute'],
    ['a level that is none', { logLevel: 'silent' }, 'INVALID_REQUEST', 'logLevel'],
    ['a list', { mempool: [1] }, 'INVALID_REQUEST', 'mempool'],
  ])('refuses %s with its own code, and applies nothing of the patch', async (_what, wrong, code, field) => {
    const before = { ...world.engine.buildLimits };
    const text = JSON.stringify({ build: { intervalMs: 1 } }).slice(0, -1);
    const patch = `${text},${JSON.stringify(wrong).slice(1)}`;
    const answer = await put('build' in (wrong as object) ? wrong : patch);
    expect(answer.json()).toMatchObject({ status: 400, code, errors: [{ code, field }] });
    expect(world.engine.buildLimits).toEqual(before);
  });

  it('refuses a malformed patch and one that changes nothing', async () => {
    for (const body of ['{}', '[]', '7', '"x"', '', '{"build":{}}'])
      expect((await put(body)).statusCode).toBe(400);
  });

  it('applies at all validators, and names those that were unreachable or refused', async () => {
    served.announced.push('validator-1', 'validator-2', 'validator-3');
    const heard: unknown[] = [];
    served.peerClients.configure = async (validatorId, { patch, subjectToken }) => {
      if (validatorId === 'validator-2') throw new AppError('unavailable', 'UNAVAILABLE', 'away');
      if (validatorId === 'validator-3') throw new AppError('invalid', 'INVALID_REQUEST', 'too much');
      heard.push([validatorId, Buffer.from(patch).toString(), subjectToken]);
    };
    const asked: string[] = [];
    served.peerClients.report = async (validatorId) => {
      asked.push(validatorId);
      throw new AppError('unavailable', 'UNAVAILABLE', 'away');
    };
    const answer = await served.app.inject({
      method: 'PUT',
      url: '/api/admin/config',
      payload: { build: { intervalMs: 9 } },
      headers: { authorization: 'Bearer theirs' },
    });
    expect(heard).toEqual([['validator-1', '{"build":{"intervalMs":9}}', 'theirs']]);
    expect(answer.json().members).toEqual([
      { validatorId: 'validator-0', reachable: true },
      { validatorId: 'validator-1', reachable: true },
      { validatorId: 'validator-2', reachable: false },
      { validatorId: 'validator-3', reachable: true, code: 'INVALID_REQUEST' },
    ]);
    heard.length = 0;
    const one = await put({ build: { intervalMs: 8 } }, '?validatorId=validator-1');
    expect(one.json()).toMatchObject({ effective: { build: { intervalMs: 9 } } });
    expect(heard).toHaveLength(1);
    expect((await put({ logLevel: 'error' }, '?validatorId=validator-9')).statusCode).toBe(404);
    expect(asked, 'for reports, which nobody reads').toEqual([]);
  });

  it('requires a system administrator', async () => {
    const routes = await served.app.inject('/openapi.json');
    expect(JSON.stringify(routes.json().paths['/api/admin/config'].put)).toContain('RequireSystemAdmin');
    expect(userCaller.roles).not.toContain('SystemAdmin');
  });
});
