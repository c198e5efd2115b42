import { describe, expect, it } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { createDocuments, type FetchDocument } from './documents.ts';

const documentOf = (path: string) => ({ openapi: '3.1.0', paths: { [path]: { get: {} } } });

/** Two services whose documents a test delays, refuses or returns; the clock is manual. */
function open() {
  const state = { nowMs: 0, fetches: 0, isRegisterUp: true };
  const held: (() => void)[] = [];
  const fetch: FetchDocument = async (service) => {
    if (service !== 'register') return documentOf(`/api/${service}`);
    state.fetches += 1;
    if (!state.isRegisterUp) throw new Error('away');
    await new Promise<void>((resolve) => held.push(resolve));
    return documentOf('/api/registers');
  };
  const documents = createDocuments({
    services: ['gateway', 'tenant', 'register'],
    fetch,
    isRouted: () => true,
    nowMs: () => state.nowMs,
    log: testRuntime('gateway').log,
  });
  const release = () => {
    for (const each of held.splice(0)) each();
  };
  return { state, documents, release };
}

const refused = { kind: 'unavailable', code: 'SERVICE_UNAVAILABLE', retryAfterSeconds: 1 };

describe('the merged document', () => {
  it('is unavailable until the document of every service has been fetched once', async () => {
    const { state, documents } = open();
    state.isRegisterUp = false;
    await expect(documents.merged()).rejects.toMatchObject(refused);
    await expect(documents.find('register')).rejects.toMatchObject(refused);
    expect(Object.keys((await documents.find('tenant'))?.paths ?? {})).toEqual(['/api/tenant']);
    expect(await documents.find('blueprint')).toBeUndefined();
  });

  it('shares one fetch among concurrent requests', async () => {
    const { state, documents, release } = open();
    const all = Promise.all([documents.merged(), documents.merged(), documents.find('register')]);
    release();
    const [first, second] = await all;
    expect(Object.keys(first.paths)).toEqual(['/api/gateway', '/api/registers', '/api/tenant']);
    expect(second).toEqual(first);
    expect(state.fetches).toBe(1);
  });

  it('retries a service that did not answer once a second', async () => {
    const { state, documents } = open();
    state.isRegisterUp = false;
    for (let n = 0; n < 3; n += 1) await expect(documents.merged()).rejects.toMatchObject(refused);
    expect(state.fetches).toBe(1);
    state.nowMs = 1000;
    await expect(documents.merged()).rejects.toMatchObject(refused);
    expect(state.fetches).toBe(2);
  });

  it('keeps the last document of a service that is down', async () => {
    const { state, documents, release } = open();
    const before = documents.merged();
    release();
    const whole = await before;
    state.isRegisterUp = false;
    state.nowMs = 30_000;
    expect(await documents.merged()).toEqual(whole);
    expect(state.fetches).toBe(2);
  });
});
