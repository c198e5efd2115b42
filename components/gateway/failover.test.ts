import type { RequestListener } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { call, createTestWorld, type TestService, type TestWorld } from './testing/world.ts';

/** Answers with its name and the size of the received body. */
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

  it('keeps using the first endpoint that answers', async () => {
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

  it('answers 503 while no endpoint can be reached, and recovers with any of them', async () => {
    const { port } = await begin();
    for (const member of members) await member.stop();
    expect((await call(port, path, { method: 'POST', body: 'x' })).status).toBe(503);
    const again = Number(members[1]?.address.split(':')[1]);
    await world.startService('validator', named('b again'), { port: again });
    expect((await call(port, path, { method: 'POST', body: 'x' })).text).toBe('b again 1');
  });

  it('skips an endpoint with another identity', async () => {
    const impostor = await world.startService('register', named('impostor'));
    const { port } = await begin([impostor.address, members[2]?.address ?? '']);
    expect((await call(port, path, { method: 'POST', body: 'x' })).text).toBe('c 1');
    expect(impostor.seen).toEqual([]);
  });

  it('does not repeat a request that a service has started to receive', async () => {
    const deaf = await world.startService('validator', (request) => request.socket.destroy());
    const { port } = await begin([deaf.address, members[0]?.address ?? '']);
    expect((await call(port, path, { method: 'POST', body: 'x' })).status).toBe(502);
    expect(members[0]?.seen).toEqual([]);
  });

  it('counts as healthy while one endpoint answers', async () => {
    const { port } = await begin();
    await members[0]?.stop();
    await members[1]?.stop();
    const health = await call(port, '/api/health');
    expect(health.json()).toMatchObject({ services: { validator: { status: 'healthy' } } });
    expect((await call(port, path)).text).toBe('c 0');
  });

  describe('with an endpoint that refuses and states that nothing was done', () => {
    const refusing: RequestListener = (request, response) => {
      request.resume();
      request.on('end', () => response.writeHead(503, { 'x-retry-elsewhere': 'true' }).end('drained'));
    };
    const refusals = (count: number) =>
      Promise.all(Array.from({ length: count }, () => world.startService('validator', refusing)));

    it.each(['GET', 'POST'])('a %s is sent to the next endpoint, and later ones at once', async (method) => {
      const [drained] = await refusals(1);
      const { port } = await begin([drained?.address ?? '', members[1]?.address ?? '']);
      const ask = () => call(port, path, { method, ...(method === 'POST' && { body: 'hello' }) });
      for (let n = 0; n < 2; n += 1)
        expect(await ask()).toMatchObject({ status: 200, text: method === 'POST' ? 'b 5' : 'b 0' });
      expect([drained?.seen.length, members[1]?.seen.length]).toEqual([1, 2]);
    });

    it('the client gets the refusal, without that statement, when all refuse', async () => {
      const all = await refusals(3);
      const { port } = await begin(all.map(({ address }) => address));
      const answer = await call(port, path, { method: 'POST', body: 'x' });
      expect(answer).toMatchObject({ status: 503, text: 'drained' });
      expect(answer.headers).not.toHaveProperty('x-retry-elsewhere');
      expect(all.every(({ seen }) => seen.length > 0)).toBe(true);
    });

    it('a streamed body is not sent again, and the next request uses another endpoint', async () => {
      const [drained] = await refusals(1);
      const { port } = await begin([drained?.address ?? '', members[1]?.address ?? '']);
      const ask = () => call(port, path, { method: 'POST', body: 'x'.repeat(200_000) });
      expect(await ask()).toMatchObject({ status: 503, text: 'drained' });
      expect(members[1]?.seen).toEqual([]);
      expect(await ask()).toMatchObject({ status: 200, text: 'b 200000' });
    });

    it('a service behind one address is called once more', async () => {
      let isClosing = true;
      const register = await world.startService('register', (request, response) => {
        if (!isClosing) return named('register')(request, response);
        isClosing = false;
        return refusing(request, response);
      });
      const gateway = await world.startGateway({ register: register.address });
      const answer = await call(gateway.port, '/api/registers', { method: 'POST', body: 'hello' });
      expect(answer).toMatchObject({ status: 200, text: 'register 5' });
    });
  });

  it('a read whose connection broke before the answer is sent to the next endpoint', async () => {
    const deaf = await world.startService('validator', (request) => request.socket.destroy());
    const { port } = await begin([deaf.address, members[0]?.address ?? '']);
    expect((await call(port, path)).text).toBe('a 0');
    expect(deaf.seen.length).toBe(1);
  });

  it('does not wait for an endpoint that no longer answers: reads are sent to the next one, other requests fail', async () => {
    const silent = await world.startService('validator', () => undefined);
    const { port } = await begin([silent.address, members[1]?.address ?? '']);
    const [read, write] = await Promise.all([
      call(port, path),
      call(port, path, { method: 'POST', body: 'x' }),
    ]);
    expect(read).toMatchObject({ status: 200, text: 'b 0' });
    expect(write.status).toBe(504);
    expect(write.json()).toMatchObject({ code: 'GATEWAY_TIMEOUT' });
  }, 20_000);

  it('waits for an endpoint that is working on its answer', async () => {
    const answers: (() => void)[] = [];
    const busy = await world.startService('validator', (request, response) => {
      if (request.url === '/health') response.end();
      else answers.push(() => response.end('at last'));
    });
    const { port } = await begin([busy.address, members[1]?.address ?? '']);
    const answer = call(port, path, { method: 'POST', body: 'x' });
    const probes = () => busy.seen.filter(({ url }) => url === '/health').length;
    await waitFor(() => probes() > 3, { what: 'four probes', deadlineMs: 15_000 });
    answers[0]?.();
    expect(await answer).toMatchObject({ status: 200, text: 'at last' });
  }, 20_000);
});
