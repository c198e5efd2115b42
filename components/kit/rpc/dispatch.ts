import type { DescMethod } from '@bufbuild/protobuf';
import type { Histogram } from 'prom-client';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { withSpan } from '#kit/telemetry/telemetry.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { RpcContext, RpcPeer } from './call.ts';
import type { CallWatch } from './call-watch.ts';
import { type ConnectedCall, type IdentifiedPeer, PeerJudge } from './credentials.ts';
import { decodeMessage, Undecodable } from './decode.ts';
import { callDuration } from './metrics.ts';
import { appErrorOf } from './status.ts';
import { encodeMessage, methodPath } from './wire.ts';

/** What a service demands of its callers. */
export interface ServiceRules {
  /** Whether a peer may call the service at all. */
  readonly allow: (peer: RpcPeer) => boolean;
  /** Refuse calls without a valid service token. Default false: the SVID is enough. */
  readonly requireToken?: boolean;
  /** Bytes of one request; 16 MiB when absent. */
  readonly maxRequestBytes?: number;
  /** Called for each request that is no message of the service or too large, which its handler never receives. */
  readonly onUndecodable?: (peer: RpcPeer) => void;
}

/** A method with the rules of its service. */
export interface ServedMethod {
  readonly path: string;
  readonly kind: DescMethod['methodKind'];
  readonly rules: ServiceRules;
}

/** A unary method; both forms of transport call it. */
export interface UnaryMethod extends ServedMethod {
  decode(bytes: Uint8Array): unknown;
  handle(request: unknown, context: RpcContext): unknown;
  encode(response: unknown): Buffer;
}

/** A call as its transport delivers it. */
export interface IncomingCall {
  /** The gRPC call that carries it. */
  readonly connection: ConnectedCall;
  readonly watch: CallWatch;
  /** Value of the header of that name. */
  readonly authorization: string | undefined;
  readonly subjectToken: string | undefined;
  readonly traceparent: string | undefined;
  /** Milliseconds since the epoch. */
  readonly deadline: number | undefined;
}

interface DispatcherOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly authenticate?: ((token: string) => Promise<Caller>) | undefined;
}

/** The unary method of a service. */
export function unaryMethod(
  method: DescMethod,
  handler: (request: unknown, context: RpcContext) => unknown,
  rules: ServiceRules,
): UnaryMethod {
  return {
    path: methodPath(method),
    kind: method.methodKind,
    rules,
    decode: requestDecoder(method, rules),
    handle: handler,
    encode: (response) => encodeMessage(method.output, response),
  };
}

/** Decodes a request within the bound of the service. */
export function requestDecoder(method: DescMethod, rules: ServiceRules): (bytes: Uint8Array) => unknown {
  const mostBytes = rules.maxRequestBytes ?? Number.POSITIVE_INFINITY;
  return (bytes) =>
    bytes.length > mostBytes ? new Undecodable('too large') : decodeMessage(method.input, bytes);
}

/** Throws AppError invalid UNDECODABLE_MESSAGE, after the service has been notified of the sender. */
export function assertDecoded(message: unknown, { onUndecodable }: ServiceRules, peer: RpcPeer): void {
  if (!(message instanceof Undecodable)) return;
  onUndecodable?.(peer);
  throw new AppError('invalid', 'UNDECODABLE_MESSAGE', `the request is not a message: ${message.reason}`);
}

/** What every call passes on its way to a handler, whatever carries it. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #judge: PeerJudge;
  readonly #duration: Histogram;
  readonly #active = new Map<CallWatch, DescMethod['methodKind']>();

  constructor(options: DispatcherOptions) {
    const { runtime, workload } = options;
    this.#options = options;
    this.#judge = new PeerJudge(workload.trustDomain, () => runtime.clock.nowMs());
    this.#duration = callDuration(runtime.telemetry, 'server');
  }

  /** Identifies the peer of a connection. Errors: unauthenticated/SVID_REFUSED. */
  identify(connection: ConnectedCall): IdentifiedPeer {
    return this.#judge.judge(connection);
  }

  /** Milliseconds until the certificate of a peer ends. */
  msLeftOf({ expiresAtMs }: IdentifiedPeer): number {
    return expiresAtMs - this.#options.runtime.clock.nowMs();
  }

  /** Answers a unary call: bytes to bytes. */
  unary(method: UnaryMethod, call: IncomingCall, request: Uint8Array): Promise<Buffer> {
    return this.run(method, call, async (context) => {
      const message = method.decode(request);
      assertDecoded(message, method.rules, context.peer);
      const response = await method.handle(message, context);
      try {
        return method.encode(response);
      } finally {
        dispose(response);
      }
    });
  }

  /** The frame of every handler: authentication, authorisation, a span, a duration, one log line for an error. */
  async run<T>(
    method: ServedMethod,
    call: IncomingCall,
    act: (context: RpcContext) => Promise<T>,
  ): Promise<T> {
    const { path, kind } = method;
    const { watch } = call;
    const { runtime } = this.#options;
    const startedAt = performance.now();
    let outcome = 'ok';
    this.#active.set(watch, kind);
    try {
      const peer = this.#judge.judge(call.connection);
      if (kind !== 'unary') watch.abortAfter(this.msLeftOf(peer), certificateExpired);
      const context = await this.#admit(call, peer, method.rules);
      const { traceparent } = call;
      const attributes = { 'rpc.system': 'grpc', 'rpc.method': path, 'chancery.peer': peer.clientId };
      return await withSpan(runtime.telemetry.tracer, path, { kind: 'server', traceparent, attributes }, () =>
        watch.run(() => act(context)),
      );
    } catch (thrown) {
      const error = appErrorOf(thrown);
      outcome = error.kind;
      if (error.kind === 'internal') runtime.log.error({ err: thrown, method: path }, 'rpc failed');
      throw error;
    } finally {
      watch.close();
      this.#active.delete(watch);
      this.#duration.observe({ method: path, outcome }, (performance.now() - startedAt) / 1000);
    }
  }

  /** Aborts the calls of these kinds of methods. */
  abort(which: (kind: DescMethod['methodKind']) => boolean, reason: AppError): void {
    for (const [watch, kind] of this.#active) {
      if (which(kind)) watch.abort(reason);
    }
  }

  async #admit(call: IncomingCall, known: IdentifiedPeer, rules: ServiceRules): Promise<RpcContext> {
    const peer: RpcPeer = { spiffeId: known.spiffeId, clientId: known.clientId };
    if (!rules.allow(peer)) {
      throw new AppError('forbidden', 'FORBIDDEN', `${peer.clientId} may not call this service`);
    }
    const { watch, subjectToken, traceparent, deadline } = call;
    const caller = await this.#caller(call.authorization, peer, rules.requireToken ?? false);
    const subject = await this.#subject(subjectToken);
    return {
      peer,
      get signal() {
        return watch.signal;
      },
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
    const subject = await authenticate(token);
    if (subject.restriction !== 'profile') return subject;
    throw new AppError('forbidden', 'PROFILE_INCOMPLETE', 'the profile of the person is incomplete');
  }
}

/** Lets a handler wipe the secrets of its response. The encoded bytes are a copy. */
function dispose(response: unknown): void {
  if (isDisposable(response)) response[Symbol.dispose]();
}

function isDisposable(response: unknown): response is Disposable {
  return typeof response === 'object' && response !== null && Symbol.dispose in response;
}

/** The reason of a stream that outlived the certificate of its peer. */
export function certificateExpired(): AppError {
  return new AppError(
    'unavailable',
    'RPC_CERTIFICATE_EXPIRED',
    'the certificate that opened this stream has expired; open it again',
  );
}
