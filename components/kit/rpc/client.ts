import type { DescMethod } from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { ClientDuplexStream, ClientReadableStream, Metadata, ServiceError } from '@grpc/grpc-js';
import type { Histogram } from 'prom-client';
import { AppError, genericCode } from '#core/errors/errors.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { currentTraceparent, withSpan } from '#kit/telemetry/telemetry.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { CallOptions, RpcClient, RpcStream } from './call.ts';
import { type ChannelHold, RotatingChannel, type WaitLimits } from './channel.ts';
import { clientStream, followSignal, receive, undecodable } from './client-stream.ts';
import { decodeMessage, Undecodable } from './decode.ts';
import { callDuration } from './metrics.ts';
import { MultiplexedCalls } from './multiplexed-calls.ts';
import { appErrorOf, fromStatus } from './status.ts';
import { type CallHeaders, callPlainly, metadataOf } from './unary-call.ts';
import { encodeMessage, methodPath } from './wire.ts';

const unaryTimeoutMs = 10_000;

interface ClientOptions {
  readonly address: string | { readonly host: string; readonly port: number };
  readonly workload: Workload;
  readonly expect: string | ((spiffeId: string) => boolean);
  readonly token?: (() => Promise<string>) | undefined;
  readonly multiplexed?: boolean | undefined;
  readonly runtime: Runtime;
}

/** Implements createRpcClient of rpc.ts. */
export function buildClient<S extends GenServiceMethods>(
  service: GenService<S>,
  options: ClientOptions,
): RpcClient<S> {
  const caller = new MethodCaller(options);
  const members: Record<string, unknown> = { close: () => caller.close() };
  for (const method of service.methods) members[method.localName] = bind(caller, method);
  return members as RpcClient<S>;
}

function bind(caller: MethodCaller, method: DescMethod): unknown {
  switch (method.methodKind) {
    case 'unary':
      return (request: unknown, options?: CallOptions) => caller.unary(method, request, options ?? {});
    case 'server_streaming':
      return (request: unknown, options?: CallOptions) => caller.receive(method, request, options ?? {});
    case 'client_streaming':
      return (requests: AsyncIterable<unknown>, options?: CallOptions) =>
        caller.upload(method, requests, options ?? {});
    case 'bidi_streaming':
      return { open: (options?: CallOptions) => caller.open(method, options ?? {}) };
  }
}

interface WireCall {
  readonly path: string;
  readonly encode: (value: unknown) => Buffer;
  readonly decode: (bytes: Buffer) => unknown;
}

class MethodCaller {
  readonly #options: ClientOptions;
  readonly #channel: RotatingChannel;
  readonly #duration: Histogram;
  readonly #multiplexed: MultiplexedCalls | undefined;
  #lastBearer: { readonly token: string; readonly header: string } | undefined;

  constructor(options: ClientOptions) {
    const { address, workload, expect, runtime } = options;
    const accepts = typeof expect === 'string' ? (id: string) => id === expect : expect;
    this.#options = options;
    this.#channel = new RotatingChannel(addressText(address), workload, accepts);
    this.#duration = callDuration(runtime.telemetry, 'client');
    this.#multiplexed = options.multiplexed === true ? new MultiplexedCalls() : undefined;
  }

  close(): void {
    this.#channel.close();
  }

  unary(method: DescMethod, request: unknown, options: CallOptions): Promise<unknown> {
    return this.#measured(method, async () => {
      const headers = await this.#headers(options);
      const { deadline } = boundsOf(options, unaryTimeoutMs);
      const { signal } = options;
      const call = {
        path: methodPath(method),
        request: encodeRequest(method, request),
        headers,
        deadline,
        signal,
      };
      const response = await this.#withChannel({ deadline, signal }, (hold) =>
        this.#multiplexed === undefined ? callPlainly(hold.client, call) : this.#multiplexed.call(hold, call),
      );
      return answerOf(decodeMessage(method.output, response));
    });
  }

  upload(method: DescMethod, requests: AsyncIterable<unknown>, options: CallOptions): Promise<unknown> {
    return this.#measured(method, async () => {
      const metadata = await this.#metadata(options);
      const wire = wireCall(method);
      const bounds = boundsOf(options);
      return await this.#withChannel({ ...bounds, signal: options.signal }, async (hold) => {
        const { promise, resolve, reject } = Promise.withResolvers<unknown>();
        const call = hold.client.makeClientStreamRequest(
          wire.path,
          wire.encode,
          wire.decode,
          metadata,
          bounds,
          (error: ServiceError | null, value?: unknown) =>
            error === null ? resolve(value) : reject(fromStatus(error)),
        );
        const forget = followSignal(call, options.signal);
        const stream = clientStream(call);
        const sent = (async () => {
          for await (const request of requests) await stream.send(request);
          stream.close();
        })();
        sent.catch(() => call.cancel());
        return await promise.then(answerOf).finally(forget);
      });
    });
  }

  async *receive(method: DescMethod, request: unknown, options: CallOptions): AsyncGenerator<unknown> {
    const metadata = await this.#metadata(options);
    const wire = wireCall(method);
    const bounds = boundsOf(options);
    const hold = await this.#channel.acquire({ ...bounds, signal: options.signal });
    let call: ClientReadableStream<unknown> | undefined;
    let forget = () => {};
    try {
      call = hold.client.makeServerStreamRequest(
        wire.path,
        wire.encode,
        wire.decode,
        request,
        metadata,
        bounds,
      );
      forget = followSignal(call, options.signal);
      yield* receive(call);
    } finally {
      forget();
      call?.cancel();
      hold.release();
    }
  }

  async open(method: DescMethod, options: CallOptions): Promise<RpcStream<unknown, unknown>> {
    const metadata = await this.#metadata(options);
    const wire = wireCall(method);
    const bounds = boundsOf(options);
    const hold = await this.#channel.acquire({ ...bounds, signal: options.signal });
    const call: ClientDuplexStream<unknown, unknown> = hold.client.makeBidiStreamRequest(
      wire.path,
      wire.encode,
      wire.decode,
      metadata,
      bounds,
    );
    const forget = followSignal(call, options.signal);
    call.once('status', () => {
      forget();
      hold.release();
    });
    const { send, close } = clientStream(call);
    return { send, close, responses: receive(call), cancel: () => call.cancel() };
  }

  async #withChannel<T>(limits: WaitLimits, act: (hold: ChannelHold) => Promise<T>): Promise<T> {
    const hold = await this.#channel.acquire(limits);
    try {
      return await act(hold);
    } finally {
      hold.release();
    }
  }

  async #headers({ subjectToken }: CallOptions): Promise<CallHeaders> {
    const token = await this.#options.token?.();
    const authorization = token === undefined ? undefined : this.#bearer(token);
    return { authorization, subjectToken, traceparent: currentTraceparent() };
  }

  /** The same string for the same token, so that its comparison is one of references. */
  #bearer(token: string): string {
    if (this.#lastBearer?.token !== token) this.#lastBearer = { token, header: `Bearer ${token}` };
    return this.#lastBearer.header;
  }

  async #metadata(options: CallOptions): Promise<Metadata> {
    return metadataOf(await this.#headers(options));
  }

  async #measured<T>(method: DescMethod, act: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const path = methodPath(method);
    let outcome = 'ok';
    try {
      const attributes = { 'rpc.system': 'grpc', 'rpc.method': path };
      return await withSpan(
        this.#options.runtime.telemetry.tracer,
        path,
        { kind: 'client', attributes },
        act,
      );
    } catch (error) {
      outcome = appErrorOf(error).kind;
      throw error;
    } finally {
      this.#duration.observe({ method: path, outcome }, (performance.now() - startedAt) / 1000);
    }
  }
}

function wireCall(method: DescMethod): WireCall {
  return {
    path: methodPath(method),
    encode: (value) => encodeMessage(method.input, value),
    decode: (bytes) => decodeMessage(method.output, bytes),
  };
}

/** Throws AppError internal for a value that is no request of the method. */
function encodeRequest(method: DescMethod, request: unknown): Buffer {
  try {
    return encodeMessage(method.input, request);
  } catch (cause) {
    throw new AppError('internal', genericCode('internal'), 'the request cannot be encoded', { cause });
  }
}

function answerOf(answer: unknown): unknown {
  if (answer instanceof Undecodable) throw undecodable(answer);
  return answer;
}

function addressText(address: ClientOptions['address']): string {
  if (typeof address === 'string') return address;
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}

/** Latest end of a call, the wait for its connection included. */
function boundsOf(options: CallOptions, otherwiseMs?: number): { readonly deadline?: number } {
  const timeoutMs = options.timeoutMs ?? otherwiseMs;
  return timeoutMs === undefined ? {} : { deadline: Date.now() + timeoutMs };
}
