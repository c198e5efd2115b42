import { request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { type App, createHttpServer, listenHttp } from './http.ts';

const anonymous = { policy: 'Anonymous' } as const;

function openApp(mount: (app: App) => void) {
  const runtime = testRuntime('service-test');
  const app = createHttpServer({ runtime, title: 'Test' });
  mount(app);
  onTestFinished(() => app.close());
  return { app, runtime };
}

function mountThings(app: App): void {
  const body = z.object({ name: z.string() });
  app.post(
    '/things',
    { config: anonymous, schema: { operationId: 'createThing', body } },
    (request) => request.body,
  );
  app.get('/things', { config: anonymous, schema: { hide: true } }, () => ({ items: [] }));
}

describe('a plain listener', () => {
  async function listen() {
    const { app } = openApp(mountThings);
    return { app, port: await listenHttp(app, { host: '127.0.0.1', port: 0 }) };
  }

  it('answers 431 to headers over 16 KB', async () => {
    const { port } = await listen();
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    const request = httpRequest(
      { port, path: '/things', headers: { 'x-large': 'x'.repeat(17 * 1024) } },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      },
    );
    request.on('error', reject);
    request.end();
    expect(await promise).toBe(431);
  });

  it('answers 503 to requests while it closes, and states that nothing was done', async () => {
    const held = Promise.withResolvers<void>();
    const isHeld = Promise.withResolvers<void>();
    const isClosing = Promise.withResolvers<void>();
    const { app } = openApp((each) => {
      mountThings(each);
      each.addHook('preClose', (done) => {
        isClosing.resolve();
        done();
      });
      each.get('/held', { config: anonymous, schema: { hide: true } }, async () => {
        isHeld.resolve();
        await held.promise;
        return {};
      });
    });
    const served: Socket[] = [];
    app.server.on('connection', (each: Socket) => served.push(each));
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    const underWay = fetch(`http://127.0.0.1:${port}/held`);
    let text = '';
    const socket = connect(port, '127.0.0.1');
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    const head = 'GET /things HTTP/1.1\r\nHost: x\r\n';
    socket.write(head);
    // A connection of which nothing was read is idle, and closes at once.
    await waitFor(() => served.some(({ bytesRead }) => bytesRead === head.length), {
      what: 'the begun request',
    });
    await isHeld.promise;
    const closed = app.close();
    await isClosing.promise;
    socket.write('\r\n');
    await waitFor(() => text.includes('}'), { what: 'the refusal' });
    expect(text).toMatch(/^HTTP\/1\.1 503 .*x-retry-elsewhere: true.*"code":"SERVICE_UNAVAILABLE"/s);
    held.resolve();
    expect((await underWay).status).toBe(200);
    await closed;
  });

  it('answers 400 to what is not HTTP', async () => {
    const { port } = await listen();
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const socket = connect(port, '127.0.0.1', () => socket.write('NOT HTTP\r\n\r\n'));
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
    expect(await promise).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n.*application\/problem\+json/s);
  });

  it('survives a client that disconnects in the middle of its body', async () => {
    const { app, runtime } = openApp(mountThings);
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(
        'POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
      );
      setImmediate(() => socket.destroy());
    });
    await waitFor(() => socket.closed, { what: 'the end of the client' });
    expect((await fetch(`http://127.0.0.1:${port}/things`)).status).toBe(200);
    expect(runtime.lines.filter((line) => line['level'] === 'error')).toEqual([]);
  });

  it('refuses two requests smuggled into one', async () => {
    const { port } = await listen();
    const { promise, resolve } = Promise.withResolvers<string>();
    const head = 'POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
    const socket = connect(port, '127.0.0.1', () =>
      socket.write(
        `${head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /things HTTP/1.1\r\n\r\n`,
      ),
    );
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString();
    });
    socket.on('close', () => resolve(text));
    expect((await promise).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
  });

  it('finishes a request in flight when it closes', async () => {
    const gate = Promise.withResolvers<void>();
    const entered = Promise.withResolvers<void>();
    const { app } = openApp((open) => {
      open.get('/slow', { config: anonymous, schema: { hide: true } }, async () => {
        entered.resolve();
        await gate.promise;
        return { done: true };
      });
    });
    const port = await listenHttp(app, { host: '127.0.0.1', port: 0 });
    const answer = fetch(`http://127.0.0.1:${port}/slow`);
    await entered.promise;
    const closing = app.close();
    gate.resolve();
    expect(await (await answer).json()).toEqual({ done: true });
    await closing;
  });

  it('closes although a client holds its connection open', async () => {
    const { app, port } = await listen();
    await (await fetch(`http://127.0.0.1:${port}/things`)).text();
    const startedAt = performance.now();
    await app.close();
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });
});
