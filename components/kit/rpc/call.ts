import type { DescMessage, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import type { GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { Caller } from '#core/identity/claims.ts';

/** The process at the other end of a connection, named by its X.509-SVID. */
export interface RpcPeer {
  readonly spiffeId: string;
  /** Client id of `spiffe://{installation}/service/{client_id}`. */
  readonly clientId: string;
}

/** What a handler receives about its call. */
export interface RpcContext {
  readonly peer: RpcPeer;
  /** The peer's own service token, verified; its client_id equals the SVID's. */
  readonly caller?: Caller;
  /** The user on whose behalf the peer calls, from a verified `x-subject-token`. */
  readonly subject?: Caller;
  readonly subjectToken?: string;
  readonly traceparent?: string;
  /** Aborted when the call is cancelled, its deadline passes or the peer's certificate expires. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch; absent when the client set none. */
  readonly deadline?: number;
}

/** One method of a generated service descriptor. */
interface RpcMethod {
  readonly input: DescMessage;
  readonly output: DescMessage;
  readonly methodKind: 'unary' | 'server_streaming' | 'client_streaming' | 'bidi_streaming';
}

type Input<M extends RpcMethod> = MessageShape<M['input']>;
type Output<M extends RpcMethod> = MessageShape<M['output']>;
type InputInit<M extends RpcMethod> = MessageInitShape<M['input']>;
type OutputInit<M extends RpcMethod> = MessageInitShape<M['output']>;

interface HandlerKinds<M extends RpcMethod> {
  unary: (request: Input<M>, context: RpcContext) => Promise<OutputInit<M>>;
  server_streaming: (request: Input<M>, context: RpcContext) => AsyncIterable<OutputInit<M>>;
  client_streaming: (requests: AsyncIterable<Input<M>>, context: RpcContext) => Promise<OutputInit<M>>;
  bidi_streaming: (requests: AsyncIterable<Input<M>>, context: RpcContext) => AsyncIterable<OutputInit<M>>;
}

/**
 * One function a method, by the method's kind. A response of a unary method that is `Disposable` is disposed once it is
 * encoded, or could not be.
 */
export type RpcHandlers<S extends GenServiceMethods> = {
  readonly [K in keyof S]: HandlerKinds<S[K]>[S[K]['methodKind']];
};

export interface CallOptions {
  /** The user's access token; sent as `x-subject-token`. */
  readonly subjectToken?: string | undefined;
  /** Milliseconds; 10 s for a unary call when absent, none for a stream. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** An open bidirectional stream. */
export interface RpcStream<I, O> {
  /** Resolves when the next message may be sent; throws once the stream has ended. */
  send(message: I): Promise<void>;
  /** Messages of the server; ends with the stream, and throws the error that ended it. Read it once. */
  readonly responses: AsyncIterable<O>;
  /** Half-closes: nothing more will be sent, and responses continue. */
  close(): void;
  /** Ends the stream at once. */
  cancel(): void;
}

interface ClientKinds<M extends RpcMethod> {
  unary: (request: InputInit<M>, options?: CallOptions) => Promise<Output<M>>;
  server_streaming: (request: InputInit<M>, options?: CallOptions) => AsyncIterable<Output<M>>;
  client_streaming: (requests: AsyncIterable<InputInit<M>>, options?: CallOptions) => Promise<Output<M>>;
  bidi_streaming: { open(options?: CallOptions): Promise<RpcStream<InputInit<M>, Output<M>>> };
}

/** The methods of a service as a client sees them. */
export type RpcClient<S extends GenServiceMethods> = {
  readonly [K in keyof S]: ClientKinds<S[K]>[S[K]['methodKind']];
} & {
  /** Ends the connection; calls in flight may finish. */
  close(): void;
};
