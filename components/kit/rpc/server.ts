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
import type { Histogram } from 'prom-client';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { withSpan } from '#kit/telemetry/telemetry.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { RpcContext, RpcHandlers, RpcPeer } from './call.ts';
import { type IdentifiedPeer, PeerJudge, SvidServerCredentials } from './credentials.ts';
import { decodeMessage, Undecodable } from './decode.ts';
import { callDuration } from './metrics.ts';
import { type AnyServerCall, type CallWatch, orAbort, pump, requestsOf, watchCall } from './server-stream.ts';
import { appErrorOf, toStatus } from './status.ts';
import { encodeMessage, methodPath, SERVER_OPTIONS } from './wire.ts';

const stopGraceMs = 3_000;

interface ServerOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly host: string;
  readonly port: number;
  readonly authenticate?: ((token: string) => Promise<Caller>) | undefined;
}

interface ServiceRules {
  /** Whether a peer may call the service at all. */
  readonly allow: (peer: RpcPeer) => boolean;
  /** Refuse calls without a valid service token. Default false: the SVID is enough. */
  readonly requireToken?: boolean;
  /** Bytes of one request; 16 MiB when absent. */
  readonly maxRequestBytes?: number;
  /** Called for each request that is no message of the service or too large, which its handler never receives. */
  readonly onUndecodable?: (peer: RpcPeer) => void;
}

interface CallFrame {
  readonly method: DescMethod;
  readonly rules: ServiceRules;
  readonly call: AnyServerCall;
}

type AnyHandler = (input: unknown, context: RpcContext) => unknown;

/** Implements RpcServer of rpc.ts. */
export class GrpcServer {
  readonly #options: ServerOptions;
  readonly #server = new Server(SERVER_OPTIONS);
  readonly #credentials: SvidServerCredentials;
  readonly #judge: PeerJudge;
  readonly #duration: Histogram;
  readonly #active = new Map<CallWatch, DescMethod['methodKind']>();

  constructor(options: ServerOptions) {
    const { runtime, workload } = options;
    this.#options = options;
    this.#credentials = new SvidServerCredentials(workload);
    this.#judge = new PeerJudge(workload.trustDomain, () => runtime.clock.nowMs());
    this.#duration = callDuration(runtime.telemetry, 'server');
  }

  add<S extends GenServiceMethods>(
    service: GenService<S>,
    handlers: RpcHandlers<S>,
    rules: ServiceRules,
  ): void {
    const definition: Record<string, ReturnType<typeof wireMethod>> = {};
    const implementation: UntypedServiceImplementation = {};
    for (const method of service.methods) {
      definition[method.localName] = wireMethod(method, rules.maxRequestBytes);
      implementation[method.localName] = this.#bind(method, handlers[method.localName] as AnyHandler, rules);
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
   * Ends streams at once and gives other calls 3 s. The calls are ended one by one, because forceShutdown of grpc-js
   * knows its connections only where channelz is on and would leave them open.
   */
  async stop(): Promise<void> {
    this.#credentials.close();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.tryShutdown(() => resolve());
    this.#endCalls((kind) => kind !== 'unary');
    const timer = setTimeout(() => {
      this.#endCalls(() => true);
      this.#server.forceShutdown();
      setImmediate(resolve);
    }, stopGraceMs);
    await promise;
    clearTimeout(timer);
  }

  #endCalls(which: (kind: DescMethod['methodKind']) => boolean): void {
    const reason = new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'the service is stopping');
    for (const [watch, kind] of this.#active) {
      if (which(kind)) watch.abort(reason);
    }
  }

  #bind(method: DescMethod, handler: AnyHandler, rules: ServiceRules) {
    const run = <T>(call: AnyServerCall, act: (context: RpcContext) => Promise<T>) =>
      this.#run({ method, rules, call }, act);
    const requests = (call: Parameters<typeof requestsOf>[0], { signal, peer }: RpcContext) =>
      requestsOf(call, signal, (message) => assertDecoded(message, rules, peer));
    switch (method.methodKind) {
      case 'unary':
        return (call: ServerUnaryCall<unknown, unknown>, reply: sendUnaryData<unknown>) =>
          answer(
            run(call, async (context) => await handler(decodedOf(call.request, rules, context), context)),
            reply,
          );
      case 'client_streaming':
        return (call: ServerReadableStream<unknown, unknown>, reply: sendUnaryData<unknown>) =>
          answer(
            run(call, async (context) => await handler(requests(call, context), context)),
            reply,
          );
      case 'server_streaming':
        return (call: ServerWritableStream<unknown, unknown>) =>
          finish(
            call,
            run(call, (context) => {
              const request = decodedOf(call.request, rules, context);
              return pump(call, handler(request, context), context.signal);
            }),
          );
      case 'bidi_streaming':
        return (call: ServerDuplexStream<unknown, unknown>) =>
          finish(
            call,
            run(call, (context) => pump(call, handler(requests(call, context), context), context.signal)),
          );
    }
  }

  /** The frame of every handler: authentication, authorisation, a span, a duration, one log line for an error. */
  async #run<T>(frame: CallFrame, act: (context: RpcContext) => Promise<T>): Promise<T> {
    const { method, rules, call } = frame;
    const path = methodPath(method);
    const startedAt = performance.now();
    let outcome = 'ok';
    const watch = watchCall(call);
    this.#active.set(watch, method.methodKind);
    try {
      const peer = this.#judge.judge(call);
      if (method.methodKind !== 'unary') watch.endAt(peer.expiresAtMs - this.#options.runtime.clock.nowMs());
      const context = await this.#admit(call, peer, rules, watch.signal);
      const { tracer } = this.#options.runtime.telemetry;
      const attributes = { 'rpc.system': 'grpc', 'rpc.method': path, 'chancery.peer': peer.clientId };
      const { traceparent } = context;
      return await withSpan(tracer, path, { kind: 'server', traceparent, attributes }, () =>
        orAbort(act(context), context.signal),
      );
    } catch (thrown) {
      const error = appErrorOf(thrown);
      outcome = error.kind;
      if (error.kind === 'internal')
        this.#options.runtime.log.error({ err: thrown, method: path }, 'rpc failed');
      throw error;
    } finally {
      watch.close();
      this.#active.delete(watch);
      this.#duration.observe({ method: path, outcome }, (performance.now() - startedAt) / 1000);
    }
  }

  async #admit(
    call: AnyServerCall,
    known: IdentifiedPeer,
    rules: ServiceRules,
    signal: AbortSignal,
  ): Promise<RpcContext> {
    const peer: RpcPeer = { spiffeId: known.spiffeId, clientId: known.clientId };
    if (!rules.allow(peer)) {
      throw new AppError('forbidden', 'FORBIDDEN', `${peer.clientId} may not call this service`);
    }
    const caller = await this.#caller(textOf(call, 'authorization'), peer, rules.requireToken ?? false);
    const subjectToken = textOf(call, 'x-subject-token');
    const subject = await this.#subject(subjectToken);
    const traceparent = textOf(call, 'traceparent');
    const deadline = deadlineOf(call);
    return {
      peer,
      signal,
      ...(caller && { caller }),
      ...(subject && { subject }),
      ...(subjectToken !== undefined && { subjectToken }),
      ...(traceparent !== undefined && { traceparent }),
      ...(deadline !== undefined && { deadline }),
    };
  }

  async #caller(header: string | undefined, peer: RpcPeer, required: boolean): Promise<Caller | undefined> {
    const { authenticate } = this.#options;
    if (header === undefined || authenticate === undefined) {
      if (required) throw new AppError('unauthenticated', 'UNAUTHORIZED', 'a service token is required');
      return undefined;
    }
    const [, token] = /^bearer +(\S+)$/i.exec(header) ?? [];
    if (token === undefined)
      throw new AppError('unauthenticated', 'UNAUTHORIZED', 'a bearer token is required');
    const caller = await authenticate(token);
    if (caller.kind !== 'service' || caller.clientId !== peer.clientId) {
      throw new AppError(
        'unauthenticated',
        'UNAUTHORIZED',
        'the token is not of the service that presents it',
      );
    }
    return caller;
  }

  async #subject(token: string | undefined): Promise<Caller | undefined> {
    const { authenticate } = this.#options;
    if (token === undefined || authenticate === undefined) return undefined;
    return await authenticate(token);
  }
}

/** Throws AppError invalid UNDECODABLE_MESSAGE, after the service has been notified of the sender. */
function assertDecoded(message: unknown, { onUndecodable }: ServiceRules, peer: RpcPeer): void {
  if (!(message instanceof Undecodable)) return;
  onUndecodable?.(peer);
  throw new AppError('invalid', 'UNDECODABLE_MESSAGE', `the request is not a message: ${message.reason}`);
}

function decodedOf(request: unknown, rules: ServiceRules, { peer }: RpcContext): unknown {
  assertDecoded(request, rules, peer);
  return request;
}

function wireMethod(method: DescMethod, mostBytes = Number.POSITIVE_INFINITY) {
  return {
    path: methodPath(method),
    requestStream: method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming',
    responseStream: method.methodKind === 'server_streaming' || method.methodKind === 'bidi_streaming',
    requestSerialize: (value: unknown) => encodeMessage(method.input, value),
    requestDeserialize: (bytes: Buffer) =>
      bytes.length > mostBytes ? new Undecodable('too large') : decodeMessage(method.input, bytes),
    responseSerialize: (value: unknown) => encodeMessage(method.output, value),
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

async function answer(result: Promise<unknown>, reply: sendUnaryData<unknown>): Promise<void> {
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
