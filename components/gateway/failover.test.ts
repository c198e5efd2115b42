import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { call, createTestWorld, type TestService, type TestWorld } from './testing/world.ts';

/** Answers with its name and the size of the body it got. */
const named =
  (name: string): RequestListener =>
  (request, response) => {
    let sizeBytes = 0;
    request.on('data', (chunk: Buffer) => {
      sizeBytes += chunk.length;
    });
    request.on('end', () => response.end(`${name} ${sizeBytes}`));
  };

describe('a service with several endpoints', () => {
  let world: TestWorld;
  let members: TestService[];

  beforeEach(async () => {
    world = await createTestWorld();
    members = await Promise.all(['a', 'b', 'c'].map((name) => world.startService('validator', named(name))));
  });
  afterEach(() => world.stop());

  const begin = (addresses = members.map((member) => member.address)) =>
    world.startGateway({ validator: addresses.join(',') });
  const path = '/api/v1/transactions/validate';

  it('keeps to the first one that answers', async () => {
    const { port } = await begin();
    for (let n = 0; n < 3; n += 1) expect((await call(port, path)).text).toBe('a 0');
    expect(members.map(({ seen }) => seen.length)).toEqual([3, 0, 0]);
  });

  it.each([
    ['small', 10],
    ['streamed', 200_000],
  ])(
    'takes a %s POST that found no connection to the next one, and stays there',
    async (_name, sizeBytes) => {
      const { port } = await begin();
      expect((await call(port, path)).text).toBe('a 0');
      await members[0]?.stop();
      const body = 'x'.repeat(sizeBytes);
      expect(await call(port, path, { method: 'POST', body })).toMatchObject({
        status: 200,
        text: `b ${sizeBytes}`,
      });
      await members[1]?.stop();
      expect((await call(port, path, { method: 'POST', body })).text).toBe(`c ${sizeBytes}`);
      expect((await call(port, path)).text).toBe('c 0');
    },
  );

  it('answers 503 while none can be reached, and comes back with any of them', async () => {
    const { port } = await begin();
    for (const member of members) await member.stop();
    expect((await call(port, path, { method: 'POST', body: 'x' })).status).toBe(503);
    const again = Number(members[1]?.address.split(':')[1]);
    await world.startService('validator', named('b again'), { port: again });
    expect((await call(port, path, { method: 'POST', body: 'x' })).text).toBe('b again 1');
  });

  it('passes one by that shows another identity', async () => {
    const impostor = await world.startService('register', named('impostor'));
    const { port } = await begin([impostor.address, members[2]?.address ?? '']);
    expect((await call(port, path, { method: 'POST', body: 'x' })).text).toBe('c 1');
    expect(impostor.seen).toEqual([]);
  });

  it('does not repeat what a service has begun to take', async () => {
    const deaf = await world.startService('validator', (request) => request.socket.destroy());
    const { port } = await begin([deaf.address, members[0]?.address ?? '']);
    expect((await call(port, path, { method: 'POST', body: 'x' })).status).toBe(502);
    expect(members[0]?.seen).toEqual([]);
  });

  it('counts as healthy while one of them answers', async () => {
    const { port } = await begin();
    await members[0]?.stop();
    await members[1]?.stop();
    const health = await call(port, '/api/health');
    expect(health.json()).toMatchObject({ services: { validator: { status: 'healthy' } } });
    expect((await call(port, path)).text).toBe('c 0');
  });
});
