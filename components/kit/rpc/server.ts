import type { DescMethod } from '@bufbuild/protobuf';
import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import {
  Server,
  type ServerDuplexStream,
  type ServerReadableStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Workload } from '#kit/workload/workload.ts';
import { MultiplexService } from '#protos/gen/chancery/rpc/v1/multiplex_pb.js';
import type { RpcContext, RpcHandlers } from './call.ts';
import { CallStream } from './call-stream.ts';
import { CallWatch, callCancelled } from './call-watch.ts';
import { connectionOf, SvidServerCredentials } from './credentials.ts';
import { decodeMessage, Undecodable } from './decode.ts';
import {
  assertDecoded,
  Dispatcher,
  type IncomingCall,
  requestDecoder,
  type ServedMethod,
  type ServiceRules,
  type UnaryMethod,
  unaryMethod,
} from './dispatch.ts';
import { type AnyServerCall, type CallEvents, pump, requestsOf } from './server-stream.ts';
import { appErrorOf, toStatus } from './status.ts';
import { asIs, BATCH_BYTES, encodeMessage, methodPath, SERVER_OPTIONS } from './wire.ts';

const stopGraceMs = 3_000;
/** Streams of calls of one connection. A client has one, and another one after the server drained the first. */
const mostCallStreams = 4;

interface ServerOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly host: string;
  readonly port: number;
  readonly authenticate?: ((token: string) => Promise<Caller>) | undefined;
}

type AnyHandler = (input: unknown, context: RpcContext) => unknown;
type GrpcUnaryCall = ServerUnaryCall<Buffer, Buffer>;

/** Implements RpcServer of rpc.ts. */
export class GrpcServer {
  readonly #options: ServerOptions;
  readonly #server = new Server(SERVER_OPTIONS);
  readonly #credentials: SvidServerCredentials;
  readonly #dispatcher: Dispatcher;
  /** By path. */
  readonly #unaryMethods = new Map<string, UnaryMethod>();
  readonly #callStreams = new Set<CallStream>();
  /** Number of streams of calls by connection. */
  readonly #callStreamsOf = new WeakMap<object, number>();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#credentials = new SvidServerCredentials(options.workload);
    this.#dispatcher = new Dispatcher(options);
    this.#server.addService(
      { exchange: exchangeMethod },
      { exchange: (call: ServerDuplexStream<Buffer | Undecodable, Buffer>) => this.#serveCalls(call) },
    );
  }

  add<S extends GenServiceMethods>(
    service: GenService<S>,
    handlers: RpcHandlers<S>,
    rules: ServiceRules,
  ): void {
    const definition: Record<string, ReturnType<typeof wireMethod>> = {};
    const implementation: UntypedServiceImplementation = {};
    for (const method of service.methods) {
      const handler = handlers[method.localName] as AnyHandler;
      definition[method.localName] = wireMethod(method, rules);
      implementation[method.localName] =
        method.methodKind === 'unary'
          ? this.#bindUnary(unaryMethod(method, handler, rules))
          : this.#bindStream(method, handler, rules);
    }
    this.#server.addService(definition, implementation);
  }

  listen(): Promise<number> {
    const { host, port } = this.#options;
    const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, this.#credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(new AppError('unavailable', 'RPC_LISTEN_FAILED', error.message, { cause: error }));
      });
    });
  }

  /**
   * Ends streams at once and gives unary calls 3 s. The calls are ended one by one, because forceShutdown of grpc-js
   * knows its connections only where channelz is on and would leave them open.
   */
  async stop(): Promise<void> {
    this.#credentials.close();
    const { promise, resolve } = Promise.withResolvers<void>();
    const reason = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'the service is stopping');
    this.#server.tryShutdown(() => resolve());
    this.#dispatcher.abort((kind) => kind !== 'unary', reason);
    for (const stream of this.#callStreams) stream.drain();
    const timer = setTimeout(() => {
      this.#dispatcher.abort(() => true, reason);
      for (const stream of this.#callStreams) stream.abort(reason);
      this.#server.forceShutdown();
      setImmediate(resolve);
    }, stopGraceMs);
    await promise;
    clearTimeout(timer);
  }

  #bindUnary(method: UnaryMethod) {
    this.#unaryMethods.set(method.path, method);
    return (call: GrpcUnaryCall, reply: sendUnaryData<Buffer>) =>
      answer(this.#dispatcher.unary(method, incomingOf(call), call.request), reply);
  }

  #bindStream(method: DescMethod, handler: AnyHandler, rules: ServiceRules) {
    const served: ServedMethod = { path: methodPath(method), kind: method.methodKind, rules };
    const run = <T>(call: AnyServerCall, act: (context: RpcContext) => Promise<T>) =>
      this.#dispatcher.run(served, incomingOf(call), act);
    const requests = (call: Parameters<typeof requestsOf>[0], { signal, peer }: RpcContext) =>
      requestsOf(call, signal, (message) => assertDecoded(message, rules, peer));
    switch (method.methodKind) {
      case 'client_streaming':
        return (call: ServerReadableStream<unknown, unknown>, reply: sendUnaryData<Buffer>) =>
          answer(
            run(call, async (context) =>
              encodeMessage(method.output, await handler(requests(call, context), context)),
            ),
            reply,
          );
      case 'server_streaming':
        return (call: ServerWritableStream<unknown, unknown>) =>
          finish(
            call,
            run(call, (context) => {
              assertDecoded(call.request, rules, context.peer);
              return pump(call, handler(call.request, context), context.signal);
            }),
          );
      default:
        return (call: ServerDuplexStream<unknown, unknown>) =>
          finish(
            call,
            run(call, (context) => pump(call, handler(requests(call, context), context), context.signal)),
          );
    }
  }

  /** Serves the unary methods of all services on one stream. */
  #serveCalls(call: ServerDuplexStream<Buffer | Undecodable, Buffer>): void {
    try {
      const peer = this.#dispatcher.identify(call);
      const release = this.#countStream(connectionOf(call) ?? call);
      const target = {
        dispatcher: this.#dispatcher,
        methods: this.#unaryMethods,
        log: this.#options.runtime.log,
        clientId: peer.clientId,
      };
      const stream = new CallStream(call, target, this.#dispatcher.msLeftOf(peer), () => {
        this.#callStreams.delete(stream);
        release();
      });
      this.#callStreams.add(stream);
    } catch (error) {
      call.emit('error', toStatus(appErrorOf(error)));
    }
  }

  #countStream(connection: object): () => void {
    const open = this.#callStreamsOf.get(connection) ?? 0;
    if (open >= mostCallStreams) {
      throw new AppError('rate_limited', 'RATE_LIMITED', 'the connection has too many streams of calls');
    }
    this.#callStreamsOf.set(connection, open + 1);
    return () => this.#callStreamsOf.set(connection, (this.#callStreamsOf.get(connection) ?? 1) - 1);
  }
}

/** Messages of the stream of calls pass as bytes; a message over the limit is dropped where it arrives. */
const exchangeMethod = {
  path: methodPath(MultiplexService.method.exchange),
  requestStream: true,
  responseStream: true,
  requestSerialize: asIs<Buffer>,
  requestDeserialize: (bytes: Buffer) =>
    bytes.length > BATCH_BYTES.message ? new Undecodable('too large') : bytes,
  responseSerialize: asIs<Buffer>,
  responseDeserialize: asIs<Buffer>,
};

/** The call in the form that grpc-js delivers; it is aborted when its client cancels it or its deadline passes. */
function incomingOf(call: AnyServerCall): IncomingCall {
  return {
    connection: call,
    watch: watchOf(call),
    authorization: textOf(call, 'authorization'),
    subjectToken: textOf(call, 'x-subject-token'),
    traceparent: textOf(call, 'traceparent'),
    deadline: deadlineOf(call),
  };
}

function watchOf(call: CallEvents): CallWatch {
  const watch = new CallWatch();
  call.once('cancelled', () => watch.abort(callCancelled()));
  return watch;
}

/** Single requests and responses pass as bytes, which the dispatcher decodes and encodes. */
function wireMethod(method: DescMethod, rules: ServiceRules) {
  const { methodKind } = method;
  const isStream = methodKind !== 'unary';
  const decode = requestDecoder(method, rules);
  return {
    path: methodPath(method),
    requestStream: methodKind === 'client_streaming' || methodKind === 'bidi_streaming',
    responseStream: methodKind === 'server_streaming' || methodKind === 'bidi_streaming',
    requestSerialize: (value: unknown) => encodeMessage(method.input, value),
    requestDeserialize: (bytes: Buffer) => (isStream ? decode(bytes) : bytes),
    responseSerialize: (value: unknown) =>
      Buffer.isBuffer(value) ? value : encodeMessage(method.output, value),
    responseDeserialize: (bytes: Buffer) => decodeMessage(method.output, bytes),
  };
}

function textOf(call: AnyServerCall, key: string): string | undefined {
  const [value] = call.metadata.get(key);
  return typeof value === 'string' ? value : undefined;
}

function deadlineOf(call: AnyServerCall): number | undefined {
  const deadline = Number(call.getDeadline());
  return Number.isFinite(deadline) ? deadline : undefined;
}

async function answer(result: Promise<Buffer>, reply: sendUnaryData<Buffer>): Promise<void> {
  try {
    reply(null, await result);
  } catch (error) {
    reply(toStatus(appErrorOf(error)));
  }
}

async function finish(
  call: ServerWritableStream<unknown, unknown> | ServerDuplexStream<unknown, unknown>,
  result: Promise<void>,
): Promise<void> {
  try {
    await result;
    call.end();
  } catch (error) {
    // A destroyed call was cancelled by its client, so there is no recipient for the status.
    if (!call.destroyed) call.emit('error', toStatus(appErrorOf(error)));
  }
}
