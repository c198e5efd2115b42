import { describe, expect, it, onTestFinished } from 'vitest';
import type { Caller } from '#core/identity/claims.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { createHttpServer } from '#kit/http/http.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { createRateLimiter } from './rate-limit.ts';

function open(profile: 'production' | 'development', caller?: Partial<Caller>) {
  const clock = manualClock(0);
  const limiter = createRateLimiter({
    profile,
    clock,
    rules: {
      PlatformAuth: { kind: 'window', limit: 2, windowSeconds: 60, key: 'address' },
      Strict: { kind: 'bucket', limit: 1, refillPerSecond: 1, key: 'subject' },
    },
  });
  const app = createHttpServer({
    runtime: testRuntime('service-test', { clock }),
    title: 'T',
    trustForwarded: true,
  });
  onTestFinished(() => app.close());
  app.addHook('onRequest', async (request) => {
    const subject = request.headers['x-test-subject'];
    if (typeof subject === 'string') {
      request.caller = { ...caller, subject } as Caller;
    }
  });
  limiter.install(app);
  app.get(
    '/guess',
    { config: { policy: 'Anonymous', rateLimit: 'PlatformAuth' }, schema: { hide: true } },
    () => 'ok',
  );
  app.get(
    '/strict',
    { config: { policy: 'Anonymous', rateLimit: 'Strict' }, schema: { hide: true } },
    () => 'ok',
  );
  app.get('/free', { config: { policy: 'Anonymous' }, schema: { hide: true } }, () => 'ok');
  return { app, clock, limiter };
}

describe('the production profile', () => {
  it('counts by address, sends the limit and the time to retry', async () => {
    const { app, clock } = open('production');
    const from = (address: string) => app.inject({ url: '/guess', headers: { 'x-forwarded-for': address } });
    const first = await from('192.0.2.1');
    expect(first.headers).toMatchObject({
      'x-ratelimit-policy': 'PlatformAuth',
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '1',
    });
    await from('192.0.2.1');
    const refused = await from('192.0.2.1');
    expect(refused.statusCode).toBe(429);
    expect(refused.json()).toMatchObject({ code: 'RATE_LIMITED', status: 429 });
    expect(refused.headers['x-ratelimit-remaining']).toBe('0');
    const waitSeconds = Number(refused.headers['retry-after']);
    expect(waitSeconds).toBeGreaterThan(0);
    expect((await from('192.0.2.2')).statusCode).toBe(200);
    clock.advance(waitSeconds * 1_000);
    expect((await from('192.0.2.1')).statusCode).toBe(200);
  });

  it('ignores an address that the client claims for itself', async () => {
    const { app } = open('production');
    const claim = (address: string) =>
      app.inject({ url: '/guess', headers: { 'x-forwarded-for': `${address}, 192.0.2.9` } });
    const statuses = [await claim('1.1.1.1'), await claim('2.2.2.2'), await claim('3.3.3.3')].map(
      (answer) => answer.statusCode,
    );
    expect(statuses).toEqual([200, 200, 429]);
  });

  it('counts by subject where there is one', async () => {
    const { app } = open('production');
    const as = (subject: string) => app.inject({ url: '/strict', headers: { 'x-test-subject': subject } });
    expect((await as('a')).statusCode).toBe(200);
    expect((await as('b')).statusCode).toBe(200);
    expect((await as('a')).statusCode).toBe(429);
  });

  it('does not affect routes without a declared limit', async () => {
    const { app } = open('production');
    const answer = await app.inject('/free');
    expect(answer.headers).not.toHaveProperty('x-ratelimit-policy');
  });

  it('accepts explicit keys', () => {
    const { limiter } = open('production');
    limiter.take('Strict', 'client-1');
    limiter.take('Strict', 'client-2');
    expect(() => limiter.take('Strict', 'client-1')).toThrow('Too many requests');
  });
});

describe('the development profile', () => {
  it('limits no throughput', async () => {
    const { app, limiter } = open('development');
    for (let index = 0; index < 20; index += 1) {
      expect((await app.inject('/guess')).statusCode).toBe(200);
      limiter.take('Strict', 'client-1');
    }
  });
});
