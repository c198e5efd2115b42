import 'reflect-metadata';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  Metadata,
  Server,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { testInstallation, testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import {
  type AnswerSchema,
  type ExchangeRequest,
  MultiplexService,
} from '#protos/gen/chancery/rpc/v1/multiplex_pb.js';
import {
  ListRevocationsResponseSchema,
  PrincipalService,
  RevocationService,
} from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import type { Authority } from '../../svid-issuer/authority/authority.ts';
import { SvidServerCredentials } from './credentials.ts';
import { decodeCalls, encodeAnswers } from './frames.ts';
import { createRpcClient, createRpcServer } from './rpc.ts';
import { methodPath, SERVER_OPTIONS } from './wire.ts';
import { type FixedWorkload, fixedWorkload, memoryAuthority } from './workload.fixture.ts';

const runtime = testRuntime('test', { level: 'silent' });
const mebibyte = 1024 * 1024;
const asIs = (bytes: Buffer) => bytes;

/** A stream of calls as a server of the test sees it. */
interface ServedStream {
  readonly call: ServerDuplexStream<Buffer, Buffer>;
  readonly batches: ExchangeRequest[];
  isOver: boolean;
  answer(...answers: MessageInitShape<typeof AnswerSchema>[]): void;
  drain(): void;
  end(): void;
}

/** Keys that the answers carry, so that a test sees how its call came. */
function responseOf(key: string): Buffer {
  return Buffer.from(
    toBinary(
      ListRevocationsResponseSchema,
      create(ListRevocationsResponseSchema, { revocations: [{ key }] }),
    ),
  );
}

describe('multiplexed calls, at the client', { timeout: 30_000 }, () => {
  let authority: Authority;
  let serverWorkload: FixedWorkload;
  beforeAll(async () => {
    authority = await memoryAuthority(testInstallation);
    serverWorkload = await fixedWorkload(authority, 'service-tenant');
  });

  /** A server that answers plain calls with "plain", and leaves streams of calls to the test when it knows them. */
  async function serve({ isOld = false, port = 0 } = {}) {
    const streams: ServedStream[] = [];
    const server = new Server(SERVER_OPTIONS);
    const serializers = {
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
    const unary = { requestStream: false, responseStream: false, ...serializers };
    const duplex = { requestStream: true, responseStream: true, ...serializers };
    let plainCalls = 0;
    const { listRevocations } = RevocationService.method;
    const { upsertPrincipal } = PrincipalService.method;
    const answerPlain = (_call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => {
      plainCalls += 1;
      reply(null, responseOf('plain'));
    };
    server.addService(
      {
        list: { path: methodPath(listRevocations), ...unary },
        upsert: { path: methodPath(upsertPrincipal), ...unary },
      },
      { list: answerPlain, upsert: answerPlain },
    );
    if (!isOld) {
      server.addService(
        { exchange: { path: methodPath(MultiplexService.method.exchange), ...duplex } },
        { exchange: (call: ServerDuplexStream<Buffer, Buffer>) => void streams.push(served(call)) },
      );
    }
    const credentials = new SvidServerCredentials(serverWorkload);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
    const at = await promise;
    const stop = () => {
      credentials.close();
      server.forceShutdown();
    };
    onTestFinished(stop);
    return { port: at, streams, stop, plainCalls: () => plainCalls };
  }

  function served(call: ServerDuplexStream<Buffer, Buffer>): ServedStream {
    const stream: ServedStream = {
      call,
      batches: [],
      isOver: false,
      answer: (...answers) => void call.write(encodeAnswers({ answers })),
      drain: () => void call.write(encodeAnswers({ draining: true })),
      end: () => void call.end(),
    };
    call.on('data', (message: Buffer) => void stream.batches.push(decodeCalls(message)));
    call.on('error', () => {});
    call.once('end', () => {
      stream.isOver = true;
    });
    call.once('cancelled', () => {
      stream.isOver = true;
    });
    return stream;
  }

  async function client(port: number, token?: () => Promise<string>) {
    const workload = await fixedWorkload(authority, 'service-wallet');
    const rpc = createRpcClient(RevocationService, {
      address: `127.0.0.1:${port}`,
      workload,
      expect: serverWorkload.id,
      token,
      multiplexed: true,
      runtime,
    });
    onTestFinished(() => rpc.close());
    const list = async (options: { timeoutMs?: number; signal?: AbortSignal } = {}, limit = 1) =>
      (await rpc.listRevocations({ limit }, options)).revocations[0]?.key;
    return { rpc, list, workload };
  }

  const numbersOf = ({ batches }: ServedStream) =>
    batches.flatMap(({ calls }) => calls.map(({ number }) => number));
  async function firstStream(streams: ServedStream[], calls = 1): Promise<ServedStream> {
    return await waitFor(() => streams.find((stream) => numbersOf(stream).length >= calls));
  }

  it('travel together, and their answers in any order', async () => {
    const { port, streams, plainCalls } = await serve();
    const { list } = await client(port);
    const asked = [list(), list(), list()];
    const stream = await firstStream(streams, 3);
    expect(stream.batches.map(({ calls }) => calls.length)).toEqual([3]);
    const [a = 0, b = 0, c = 0] = numbersOf(stream);
    stream.answer({ number: c, response: responseOf('c') }, { number: 9_999, response: responseOf('?') });
    stream.answer({ number: b, response: responseOf('b') }, { number: a, response: responseOf('a') });
    expect(await Promise.all(asked)).toEqual(['a', 'b', 'c']);
    expect(plainCalls()).toBe(0);
    expect(streams).toHaveLength(1);
  });

  it('send a token once, and again when it has changed', async () => {
    const { port, streams } = await serve();
    let token = 'first';
    const { list } = await client(port, async () => token);
    const seen: unknown[] = [];
    for (const next of ['first', 'first', 'second', 'second', 'first']) {
      token = next;
      const asked = list();
      const stream = await firstStream(streams, seen.length + 1);
      const { number, authorization } = stream.batches.flatMap(({ calls }) => calls).at(-1) ?? { number: 0 };
      seen.push(authorization);
      stream.answer({ number, response: responseOf('x') });
      await asked;
    }
    expect(seen).toEqual(['Bearer first', undefined, 'Bearer second', undefined, 'Bearer first']);
  });

  it('end at their deadline or signal; the server is told, and late answers are ignored', async () => {
    const { port, streams } = await serve();
    const { list } = await client(port);
    const abort = new AbortController();
    const kept = list();
    const stream = await firstStream(streams);
    stream.call.sendMetadata(new Metadata());
    const aborted = expect(list({ signal: abort.signal })).rejects.toMatchObject({ kind: 'unavailable' });
    const late = expect(list({ timeoutMs: 2_000 })).rejects.toMatchObject({ kind: 'timeout' });
    await firstStream(streams, 3);
    const [first = 0, second = 0, third = 0] = numbersOf(stream);
    const timeouts = stream.batches.flatMap(({ calls }) => calls.map(({ timeoutMs }) => timeoutMs));
    expect(timeouts[2]).toBeGreaterThan(0);
    expect(timeouts[2]).toBeLessThanOrEqual(2_000);
    abort.abort();
    await aborted;
    await late;
    const cancelled = () => stream.batches.flatMap((batch) => batch.cancelled);
    await waitFor(() => cancelled().length === 2);
    expect(cancelled()).toEqual([second, third]);
    stream.answer({ number: second, response: responseOf('late') });
    stream.answer({ number: first, response: responseOf('kept') });
    expect(await kept).toBe('kept');
    await expect(list({ signal: AbortSignal.abort() })).rejects.toMatchObject({ kind: 'unavailable' });
  });

  it('fail together when the stream ends, none is sent again, and the next call opens another stream', async () => {
    const { port, streams, plainCalls } = await serve();
    const { list } = await client(port);
    const asked = [list(), list()];
    for (const each of asked) each.catch(() => undefined);
    const stream = await firstStream(streams, 2);
    stream.answer({ number: 0 });
    stream.end();
    for (const each of asked) await expect(each).rejects.toMatchObject({ kind: 'unavailable' });
    const next = list();
    const second = await waitFor(() => streams[1]);
    await waitFor(() => numbersOf(second).length === 1);
    second.answer({ number: numbersOf(second)[0] ?? 0, response: responseOf('again') });
    expect(await next).toBe('again');
    expect(plainCalls()).toBe(0);
  });

  it('fail together when the connection is lost', async () => {
    const { port, streams } = await serve();
    const sockets: Socket[] = [];
    const proxy = createServer((socket) => {
      const onward = connect(port, '127.0.0.1');
      sockets.push(socket, onward);
      for (const each of [socket, onward]) each.on('error', () => {});
      socket.pipe(onward).pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    onTestFinished(() => void proxy.close());
    const { list } = await client((proxy.address() as { port: number }).port);
    const asked = [list(), list()];
    for (const each of asked) each.catch(() => undefined);
    const stream = await firstStream(streams, 2);
    for (const socket of sockets) socket.destroy();
    for (const each of asked) await expect(each).rejects.toMatchObject({ kind: 'unavailable' });
    await waitFor(() => stream.isOver);
    const next = list();
    const again = await waitFor(() => streams[1]);
    await waitFor(() => numbersOf(again).length === 1);
    again.answer({ number: numbersOf(again)[0] ?? 0, response: responseOf('again') });
    expect(await next).toBe('again');
  });

  it('to an older server are plain calls, until it is replaced by a newer one', async () => {
    const old = await serve({ isOld: true });
    const { list } = await client(old.port);
    expect(await Promise.all([list(), list(), list()])).toEqual(['plain', 'plain', 'plain']);
    expect(await list()).toBe('plain');
    expect(old.plainCalls()).toBe(4);
    old.stop();
    await waitFor(
      () =>
        list().then(
          () => false,
          () => true,
        ),
      { what: 'the end of the old server' },
    );
    const { streams, plainCalls } = await serve({ port: old.port });
    const next = waitFor(() => list({ timeoutMs: 2_000 }).catch(() => undefined));
    await waitFor(() => {
      for (const stream of streams) {
        for (const number of numbersOf(stream)) stream.answer({ number, response: responseOf('frames') });
      }
      return streams.length > 0 && numbersOf(streams[0] as ServedStream).length > 0;
    });
    expect(await next).toBe('frames');
    expect(plainCalls()).toBe(0);
  });

  it('with a large request are plain calls, and with a large answer are not', async () => {
    const { port, streams, plainCalls } = await serve();
    const { list, workload } = await client(port);
    const address = `127.0.0.1:${port}`;
    const options = { address, workload, expect: serverWorkload.id, multiplexed: true, runtime };
    const principals = createRpcClient(PrincipalService, options);
    onTestFinished(() => principals.close());
    await principals.upsertPrincipal({ clientId: 'x'.repeat(300_000) });
    expect(plainCalls()).toBe(1);
    const asked = list();
    const stream = await firstStream(streams);
    const response = responseOf('z'.repeat(3 * mebibyte));
    const [number = 0] = numbersOf(stream);
    for (let at = 0; at < response.length; at += mebibyte) {
      const part = response.subarray(at, at + mebibyte);
      stream.answer({ number, response: part, partial: at + mebibyte < response.length });
    }
    expect((await asked)?.length).toBe(3 * mebibyte);
    const endless = list();
    await firstStream(streams, 2);
    const part = Buffer.alloc(mebibyte);
    for (let count = 0; count < 20; count += 1) {
      stream.answer({ number: numbersOf(stream)[1] ?? 0, response: part, partial: true });
    }
    await expect(endless).rejects.toMatchObject({ kind: 'too_large' });
  });

  it('beyond the bound of the stream are plain calls', async () => {
    const { port, streams, plainCalls } = await serve();
    const { list } = await client(port);
    const asked = Array.from({ length: 1_030 }, () => list({ timeoutMs: 60_000 }));
    const stream = await firstStream(streams, 1_024);
    await waitFor(() => plainCalls() === 6);
    for (const number of numbersOf(stream)) stream.answer({ number, response: responseOf('frames') });
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['frames', 'plain']));
  });

  it('leave a stream that the server drains: calls in flight finish, new ones use another stream', async () => {
    const { port, streams } = await serve();
    const { list } = await client(port);
    const asked = list();
    const stream = await firstStream(streams);
    stream.drain();
    await waitFor(async () => {
      void list({ timeoutMs: 300 }).catch(() => undefined);
      return streams.length === 2;
    });
    expect(stream.isOver).toBe(false);
    stream.answer({ number: numbersOf(stream)[0] ?? 0, response: responseOf('finished') });
    expect(await asked).toBe('finished');
    await waitFor(() => stream.isOver, { what: 'the half-close of the client' });
  });

  it('use a new stream after a rotation; calls in flight finish on the old one, which then ends', async () => {
    const { port, streams } = await serve();
    const { list, workload } = await client(port);
    const asked = list();
    const first = await firstStream(streams);
    await workload.rotate();
    const next = list();
    const second = await waitFor(() => streams[1]);
    await waitFor(() => numbersOf(second).length === 1);
    second.answer({ number: numbersOf(second)[0] ?? 0, response: responseOf('second') });
    expect(await next).toBe('second');
    expect(first.isOver).toBe(false);
    first.answer({ number: numbersOf(first)[0] ?? 0, response: responseOf('first') });
    expect(await asked).toBe('first');
    await waitFor(() => first.isOver, { what: 'the end of the first stream' });
  });

  it('fail when the server sends what is no answer', async () => {
    const { port, streams } = await serve();
    const { list } = await client(port);
    const asked = [list(), list()];
    for (const each of asked) each.catch(() => undefined);
    const stream = await firstStream(streams, 2);
    stream.call.write(Buffer.from([0x0a, 200, 1]));
    for (const each of asked) await expect(each).rejects.toMatchObject({ kind: 'bad_gateway' });
    await waitFor(() => stream.isOver);
    const damaged = list();
    const second = await waitFor(() => streams[1]);
    await waitFor(() => numbersOf(second).length === 1);
    second.answer({ number: numbersOf(second)[0] ?? 0, response: Buffer.from([0x0a, 9]) });
    await expect(damaged).rejects.toMatchObject({ kind: 'bad_gateway', code: 'UNDECODABLE_MESSAGE' });
  });

  it('survive the stop of a real server: those in flight finish', async () => {
    const server = createRpcServer({ runtime, workload: serverWorkload, host: '127.0.0.1', port: 0 });
    const { promise, resolve } = Promise.withResolvers<object>();
    let calls = 0;
    const listRevocations = () => {
      calls += 1;
      return promise;
    };
    server.add(RevocationService, { listRevocations }, { allow: () => true });
    const { rpc } = await client(await server.listen());
    const asked = rpc.listRevocations({});
    await waitFor(() => calls === 1);
    const startedAt = performance.now();
    const stopped = server.stop();
    setImmediate(() => resolve({}));
    await asked;
    await stopped;
    expect(performance.now() - startedAt).toBeLessThan(2_500);
    await expect(rpc.listRevocations({})).rejects.toMatchObject({ kind: 'unavailable' });
  });
});
