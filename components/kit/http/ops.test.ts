import { describe, expect, it, onTestFinished } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { createOpsServer, type ReadinessCheck } from './http.ts';

async function open(checks: readonly ReadinessCheck[]) {
  const runtime = testRuntime('service-test');
  const server = await createOpsServer({ runtime, host: '127.0.0.1', port: 0, checks, checkTimeoutMs: 50 });
  onTestFinished(() => server.stop());
  const get = async (path: string) => {
    const answer = await fetch(`http://${server.address}${path}`);
    return { status: answer.status, text: await answer.text(), type: answer.headers.get('content-type') };
  };
  return { runtime, server, get };
}

describe('the operations listener', () => {
  it('is alive and ready when every check passes', async () => {
    const { get } = await open([{ name: 'database', check: () => undefined }]);
    expect(await get('/alive')).toMatchObject({ status: 200 });
    const ready = await get('/ready?probe=1');
    expect(ready.status).toBe(200);
    expect(JSON.parse(ready.text)).toEqual({
      status: 'Healthy',
      service: 'service-test',
      checks: [{ name: 'database', status: 'Healthy', durationMs: expect.any(Number) }],
    });
  });

  it('is alive but not ready while a check fails or does not answer', async () => {
    const { get } = await open([
      { name: 'database', check: () => Promise.reject(new Error('away')) },
      { name: 'tenant', check: () => new Promise(() => undefined) },
      { name: 'bus', check: () => undefined },
    ]);
    expect((await get('/alive')).status).toBe(200);
    const ready = await get('/ready');
    expect(ready.status).toBe(503);
    expect(JSON.parse(ready.text).checks).toMatchObject([
      { name: 'database', status: 'Unhealthy', error: 'away' },
      { name: 'tenant', status: 'Unhealthy', error: 'no answer within 50 ms' },
      { name: 'bus', status: 'Healthy' },
    ]);
    expect((await get('/health')).status).toBe(503);
  });

  it('is degraded and ready while only a check fails that it can serve without', async () => {
    const clock: ReadinessCheck = {
      name: 'clock',
      degrades: true,
      check: () => {
        throw new Error('the clock is 900 ms ahead');
      },
    };
    const { get } = await open([clock, { name: 'bus', check: () => undefined }]);
    expect((await get('/ready')).status).toBe(200);
    const health = await get('/health');
    expect([health.status, JSON.parse(health.text)]).toMatchObject([
      200,
      { status: 'Degraded', checks: [{ status: 'Degraded', error: 'the clock is 900 ms ahead' }, {}] },
    ]);
    const worse = await open([clock, { name: 'bus', check: () => Promise.reject(new Error('away')) }]);
    expect((await worse.get('/ready')).status).toBe(503);
  });

  it('shows the metrics of its component', async () => {
    const { get, runtime } = await open([]);
    runtime.telemetry.counter('acts_total', 'Acts.').inc(3);
    const metrics = await get('/metrics');
    expect(metrics.type).toContain('text/plain');
    expect(metrics.text).toContain('chancery_test_acts_total 3');
  });

  it('serves nothing else', async () => {
    const { get } = await open([]);
    expect((await get('/')).status).toBe(404);
  });

  it('reports when its port is taken', async () => {
    const { server, runtime } = await open([]);
    const again = createOpsServer({ runtime, host: '127.0.0.1', port: server.port, checks: [] });
    await expect(again).rejects.toThrow('EADDRINUSE');
  });
});
