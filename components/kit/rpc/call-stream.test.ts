import 'reflect-metadata';
import { constants } from 'node:http2';
import { status as grpc } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { RevocationService } from '#protos/gen/chancery/tenant/v1/tenant_pb.js';
import { connectRaw, grpcMessage, openRawCalls, type RawCalls } from './raw-calls.fixture.ts';
import { type RpcWorld, startRpcWorld } from './rpc.fixture.ts';
import { createRpcServer, type RpcContext } from './rpc.ts';
import { MAX_CONCURRENT_STREAMS } from './wire.ts';
import { type FixedWorkload, fixedWorkload } from './workload.fixture.ts';

const mebibyte = 1024 * 1024;
const upsert = '/chancery.tenant.v1.PrincipalService/UpsertPrincipal';
/** `limit` of ListRevocations as the request has it; the fixture answers with so many characters. */
const limit = (value: number) => {
  const varint = (rest: number): number[] =>
    rest < 0x80 ? [rest] : [(rest & 0x7f) | 0x80, ...varint(rest >>> 7)];
  return Buffer.from([16, ...varint(value)]);
};
const waits = limit(999);

describe('a stream of calls, at the server', { timeout: 30_000 }, () => {
  let world: RpcWorld;
  beforeAll(async () => {
    world = await startRpcWorld();
  });
  afterAll(() => world.server.stop());
  beforeEach(() => {
    world.contexts = [];
  });

  function open(workload: FixedWorkload = world.clientWorkload, isRead = true): RawCalls {
    const session = connectRaw(world.port, workload);
    onTestFinished(() => session.destroy());
    return openRawCalls(session, isRead);
  }
  const aborted = () => world.contexts.filter(({ signal }) => signal.aborted).length;
  /** Resolves when no further handler has begun for a while. */
  async function steady(): Promise<void> {
    let before = -1;
    await waitFor(
      () => {
        const isSteady = before === world.contexts.length;
        before = world.contexts.length;
        return isSteady;
      },
      { everyMs: 200, deadlineMs: 10_000 },
    );
  }

  it('answers calls as they finish, several in one message', async () => {
    const raw = open();
    raw.send({ number: 1, request: waits, timeoutMs: 60_000 }, { number: 2 }, { number: 3 }, { number: 4 });
    await Promise.all([2, 3, 4].map((number) => raw.answer(number)));
    expect(raw.messages).toBe(1);
    expect(raw.answers.map(({ number }) => number)).toEqual([2, 3, 4]);
    expect(world.contexts[0]?.deadline).toBeGreaterThan(Date.now() + 50_000);
    raw.cancel(1);
    await waitFor(() => aborted() === 1);
  });

  it('refuses methods that are unknown or streams, and continues', async () => {
    const raw = open();
    raw.send(
      { number: 1, method: '/chancery.tenant.v1.RevocationService/Nothing' },
      { number: 2, method: '/chancery.wallet.v1.SystemSignerService/SignConsensus' },
      { number: 3, method: '/chancery.rpc.v1.MultiplexService/Exchange' },
      { number: 4, method: '' },
      { number: 5 },
    );
    await raw.answer(5);
    for (const number of [1, 2, 3, 4]) {
      expect((await raw.answer(number)).status?.code).toBe(grpc.UNIMPLEMENTED);
    }
    expect((await raw.answer(5)).status).toBeUndefined();
  });

  it('judges the token of each call; a call without one has that of the last call', async () => {
    const raw = open();
    const codes: unknown[] = [];
    const tokens = [
      undefined,
      'Bearer service:service-wallet',
      undefined,
      'Bearer service:service-register',
      undefined,
      'nonsense',
      'Bearer service:service-wallet',
      undefined,
    ];
    for (const [at, authorization] of tokens.entries()) {
      raw.send({
        number: at,
        method: upsert,
        request: Buffer.alloc(0),
        ...(authorization && { authorization }),
      });
      codes.push((await raw.answer(at)).status?.code ?? grpc.OK);
    }
    const { OK, UNAUTHENTICATED } = grpc;
    expect(codes).toEqual([
      UNAUTHENTICATED,
      OK,
      OK,
      UNAUTHENTICATED,
      UNAUTHENTICATED,
      UNAUTHENTICATED,
      OK,
      OK,
    ]);
  });

  it('refuses each call of a peer that the service does not allow', async () => {
    const raw = open(await fixedWorkload(world.authority, 'service-stranger'));
    raw.send({ number: 1 });
    expect((await raw.answer(1)).status?.code).toBe(grpc.PERMISSION_DENIED);
  });

  it.each<readonly [string, (raw: RawCalls) => void]>([
    ['a number that is in use', (raw) => raw.send({ number: 1 })],
    ['a message that is none', (raw) => raw.write(Buffer.from([0x0a, 200, 1]))],
    ['a message over 1 MiB', (raw) => raw.send({ number: 2, request: Buffer.alloc(mebibyte) })],
    ['a message over 16 MiB', (raw) => raw.send({ number: 2, request: Buffer.alloc(17 * mebibyte) })],
    ['a false length', (raw) => void raw.stream.write(grpcMessage(Buffer.alloc(9), 0xffff_ffff))],
    ['a method name of a megabyte', (raw) => raw.send({ number: 2, method: 'm'.repeat(mebibyte - 100) })],
    ['too many calls', (raw) => raw.send(...Array.from({ length: 1_025 }, (_, at) => ({ number: at + 2 })))],
  ])('ends with %s, and aborts its calls; other streams continue', async (_what, send) => {
    const other = open();
    const raw = open();
    raw.send({ number: 1, request: waits });
    await waitFor(() => world.contexts.length === 1);
    send(raw);
    await waitFor(() => raw.status !== undefined, { what: 'the end of the stream' });
    expect(raw.status).not.toBe('0');
    await waitFor(() => aborted() === 1);
    other.send({ number: 1 });
    await other.answer(1);
    openRawCalls(raw.session).send({ number: 1 });
    await waitFor(() => world.contexts.length >= 3);
  });

  it('does not wait for a message that never ends', async () => {
    const raw = open();
    raw.send({ number: 1 });
    await raw.answer(1);
    raw.stream.write(grpcMessage(Buffer.alloc(10), 1_000));
    raw.send({ number: 2 });
    const other = openRawCalls(raw.session);
    other.send({ number: 1 });
    await other.answer(1);
    expect(raw.answers).toHaveLength(1);
    raw.stream.close(constants.NGHTTP2_CANCEL);
  });

  it('runs a bounded number of handlers, also for a client that cancels what it asks', async () => {
    const raw = open();
    const batch = 512;
    const rounds = 40;
    for (let round = 0; round < rounds; round += 1) {
      const numbers = Array.from({ length: batch }, (_, at) => round * batch + at);
      raw.send(...numbers.map((number) => ({ number, request: waits })));
      if (round % 2 === 0) raw.cancel(...numbers);
    }
    await waitFor(() => world.contexts.length - aborted() >= MAX_CONCURRENT_STREAMS);
    const other = open();
    other.send({ number: 1, method: 'none' });
    await other.answer(1);
    expect(world.contexts.length - aborted()).toBeLessThanOrEqual(2 * MAX_CONCURRENT_STREAMS);
    raw.stream.close(constants.NGHTTP2_CANCEL);
    await waitFor(() => world.contexts.length === aborted(), { what: 'the end of all handlers' });
  });

  it('answers the deadline of a call itself', async () => {
    const raw = open();
    raw.send({ number: 1, request: waits, timeoutMs: 50 });
    expect((await raw.answer(1)).status?.code).toBe(grpc.DEADLINE_EXCEEDED);
    expect(world.contexts[0]?.signal.reason).toMatchObject({ kind: 'timeout' });
  });

  it('is not read further while answers wait for a slow reader', async () => {
    const raw = open(world.clientWorkload, false);
    const request = limit(50_000);
    for (let number = 0; number < 4_000; number += 1) raw.send({ number, request });
    await waitFor(() => world.contexts.length > 100);
    await steady();
    expect(world.contexts.length).toBeLessThan(1_500);
    const other = open();
    other.send({ number: 1 });
    await other.answer(1);
  });

  it('is not read further while the tokens of running calls fill its memory', async () => {
    const raw = open();
    const subjectToken = `user:${'t'.repeat(mebibyte - 1_000)}`;
    for (let number = 0; number < 60; number += 1) raw.send({ number, request: waits, subjectToken });
    await waitFor(() => world.contexts.length > 8);
    await steady();
    expect(world.contexts.length).toBeLessThan(20);
    raw.stream.close(constants.NGHTTP2_CANCEL);
    await waitFor(() => world.contexts.length === aborted(), { what: 'the end of all handlers' });
  });

  it('sends a large answer in parts, so that small ones pass it', async () => {
    const raw = open();
    raw.send({ number: 1, request: limit(8 * mebibyte) });
    await waitFor(() => raw.answers.length > 0);
    raw.send({ number: 2 });
    await raw.answer(2);
    const order = raw.answers.findIndex(({ number }) => number === 2);
    expect((await raw.answer(1)).response.length).toBeGreaterThan(8 * mebibyte);
    expect(order).toBeLessThan(raw.answers.length - 1);
  });

  it('at the end of the certificate refuses new calls, finishes those in flight, and ends', async () => {
    const workload = await fixedWorkload(world.authority, 'service-wallet', {
      notAfterMs: Date.now() + 2_000,
    });
    const raw = open(workload);
    raw.send({ number: 1, request: waits, timeoutMs: 4_000 });
    raw.send({ number: 2 });
    expect((await raw.answer(2)).status).toBeUndefined();
    await waitFor(() => raw.isDraining, { what: 'the end of the certificate' });
    raw.send({ number: 3 });
    expect((await raw.answer(3)).status?.code).toBe(grpc.UNAUTHENTICATED);
    expect(aborted()).toBe(0);
    expect((await raw.answer(1)).status?.code).toBe(grpc.DEADLINE_EXCEEDED);
    await waitFor(() => raw.status === String(grpc.UNAVAILABLE), { what: 'the end of the stream' });
    const again = openRawCalls(raw.session);
    await waitFor(() => again.status === String(grpc.UNAUTHENTICATED));
  });

  it('is refused when the connection has too many of them', async () => {
    const raw = open();
    const more = Array.from({ length: 5 }, () => openRawCalls(raw.session));
    await waitFor(() => more.filter(({ status }) => status === String(grpc.RESOURCE_EXHAUSTED)).length === 2);
    raw.stream.close(constants.NGHTTP2_CANCEL);
    await waitFor(async () => {
      const next = openRawCalls(raw.session);
      next.send({ number: 1 });
      return await next.answer(1);
    });
  });

  it('notifies a service of requests that are none or too large, and only the call fails', async () => {
    const runtime = testRuntime('test', { level: 'silent' });
    const { serverWorkload: workload } = world;
    const server = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
    const senders: string[] = [];
    const calls: RpcContext[] = [];
    const listRevocations = async (_request: unknown, context: RpcContext) => {
      calls.push(context);
      return {};
    };
    server.add(
      RevocationService,
      { listRevocations },
      { allow: () => true, maxRequestBytes: 100, onUndecodable: ({ clientId }) => senders.push(clientId) },
    );
    const port = await server.listen();
    onTestFinished(() => server.stop());
    const session = connectRaw(port, world.clientWorkload);
    onTestFinished(() => session.destroy());
    const raw = openRawCalls(session);
    raw.send(
      { number: 1, request: Buffer.from([16]) },
      { number: 2 },
      { number: 3, request: Buffer.alloc(101, Buffer.from([16, 1])) },
    );
    expect((await raw.answer(1)).status?.code).toBe(grpc.INVALID_ARGUMENT);
    expect((await raw.answer(2)).status).toBeUndefined();
    expect((await raw.answer(3)).status?.code).toBe(grpc.INVALID_ARGUMENT);
    expect(senders).toEqual(['service-wallet', 'service-wallet']);
    expect(calls).toHaveLength(1);
  });

  it('when the server stops: calls in flight finish, and the client is told to leave', async () => {
    const runtime = testRuntime('test', { level: 'silent' });
    const { serverWorkload: workload } = world;
    const server = createRpcServer({ runtime, workload, host: '127.0.0.1', port: 0 });
    const { promise, resolve } = Promise.withResolvers<object>();
    server.add(RevocationService, { listRevocations: () => promise }, { allow: () => true });
    const session = connectRaw(await server.listen(), world.clientWorkload);
    onTestFinished(() => session.destroy());
    const raw = openRawCalls(session);
    raw.send({ number: 1 });
    await waitFor(() => raw.stream.id !== undefined);
    const hello = openRawCalls(session);
    hello.send({ number: 1, method: 'none' });
    await hello.answer(1);
    const startedAt = performance.now();
    const stopped = server.stop();
    await waitFor(() => raw.isDraining);
    resolve({});
    expect((await raw.answer(1)).status).toBeUndefined();
    raw.stream.end();
    hello.stream.end();
    await stopped;
    expect(performance.now() - startedAt).toBeLessThan(2_500);
    await waitFor(() => raw.status === '0');
  });
});
