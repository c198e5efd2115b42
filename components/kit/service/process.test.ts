import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { createProcess } from './process.ts';

const config = { CHANCERY_LISTEN_HOST: '127.0.0.1', CHANCERY_OPS_PORT: 0 };

const away = () => new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'connection refused');

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('a process whose dependency is away', () => {
  it('waits for it alive, names it in its readiness and once in its log, and then starts', async () => {
    const port = await freePort();
    const isWaiting = Promise.withResolvers<void>();
    const answers = Promise.withResolvers<void>();
    const isPast = Promise.withResolvers<void>();
    const opened = Promise.withResolvers<void>();
    const runtime = testRuntime('service-test');
    const errors = [away(), away()];
    const create = createProcess<typeof config, object>({
      name: 'test',
      assemble: async ({ start }) => {
        await start.untilAvailable('the ledger', async () => {
          const error = errors.shift();
          if (error !== undefined) throw error;
          isWaiting.resolve();
          await answers.promise;
        });
        isPast.resolve();
        await opened.promise;
        return {};
      },
      listen: async () => ({}),
    });
    const created = create({ ...config, CHANCERY_OPS_PORT: port }, runtime);
    await isWaiting.promise;
    const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
    expect((await get('/alive')).status).toBe(200);
    const waiting = await get('/ready');
    expect(waiting.status).toBe(503);
    expect(await waiting.text()).toContain('waits for the ledger: connection refused');
    const logged = runtime.lines.filter(({ msg }) => msg === 'the start waits for a dependency');
    expect(logged).toEqual([expect.objectContaining({ dependency: 'the ledger', level: 'warn' })]);
    answers.resolve();
    await isPast.promise;
    expect(await (await get('/ready')).text()).toContain('waits for its parts to open');
    opened.resolve();
    const component = await created;
    expect((await get('/ready')).status).toBe(200);
    await component.stop();
    await expect(get('/ready')).rejects.toThrow();
  });

  it('ends, and closes its listener, where waiting repairs nothing', async () => {
    const port = await freePort();
    const create = createProcess<typeof config, object>({
      name: 'test',
      assemble: async ({ start }) => {
        await start.untilAvailable('the ledger', async () => {
          throw new AppError('forbidden', 'FORBIDDEN', 'another identity');
        });
        return {};
      },
      listen: async () => ({}),
    });
    const created = create({ ...config, CHANCERY_OPS_PORT: port }, testRuntime('service-test'));
    await expect(created).rejects.toThrow('another identity');
    await expect(fetch(`http://127.0.0.1:${port}/alive`)).rejects.toThrow();
  });
});
