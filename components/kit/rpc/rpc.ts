import type { GenService, GenServiceMethods } from '@bufbuild/protobuf/codegenv2';
import type { Caller } from '#core/identity/claims.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import type { Workload } from '#kit/workload/workload.ts';
import type { RpcClient, RpcHandlers } from './call.ts';
import { buildClient } from './client.ts';
import type { ServiceRules } from './dispatch.ts';
import { GrpcServer } from './server.ts';

export type { CallOptions, RpcClient, RpcContext, RpcHandlers, RpcPeer, RpcStream } from './call.ts';

interface RpcServerOptions {
  readonly runtime: Runtime;
  readonly workload: Workload;
  /** Address to listen on. */
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Verifies access tokens (the peer's own and `x-subject-token`); without it neither is read. */
  readonly authenticate?: ((token: string) => Promise<Caller>) | undefined;
}

/** What a service demands of its callers. */
export type RpcRules = ServiceRules;

export interface RpcServer {
  /** Adds a service; call it before listen. A handler throws AppError to refuse. */
  add<S extends GenServiceMethods>(service: GenService<S>, handlers: RpcHandlers<S>, rules: RpcRules): void;
  /** Resolves with the port. */
  listen(): Promise<number>;
  /** Ends streams at once, and other calls after they finished or after 3 s. */
  stop(): Promise<void>;
}

export interface RpcClientOptions {
  /** `host:port`. */
  readonly address: string | { readonly host: string; readonly port: number };
  readonly workload: Workload;
  /** SPIFFE id of the server, or a predicate for it. */
  readonly expect: string | ((spiffeId: string) => boolean);
  /** This service's own token, sent as `authorization`. */
  readonly token?: (() => Promise<string>) | undefined;
  /**
   * Carry unary calls on one stream of the connection, several in one message: for clients of many small calls. Rules,
   * tokens, deadlines, cancellation, errors, metrics and traces are those of a call of its own. Default false.
   */
  readonly multiplexed?: boolean | undefined;
  readonly runtime: Runtime;
}

/**
 * A gRPC server over mutual TLS 1.3. Clients need an X.509-SVID of the installation's trust domain (one URI SAN,
 * CA:FALSE, digitalSignature, not expired at the time of each call); streams end when it expires. AppError is sent
 * completely, `internal` without its text. Messages up to 16 MiB, keepalive 10 s.
 *
 * Errors of listen: unavailable/RPC_LISTEN_FAILED. Errors of calls: unauthenticated/SVID_REFUSED, forbidden/FORBIDDEN
 * (rules), unauthenticated/UNAUTHORIZED (tokens).
 */
export function createRpcServer(options: RpcServerOptions): RpcServer {
  return new GrpcServer(options);
}

/**
 * A typed client of one service over mutual TLS 1.3. The connection is opened by the first call and again after each
 * rotation of the SVID. Unary calls end after 10 s unless another time is given; nothing is retried.
 *
 * Errors of calls: those of the server; unavailable (no connection, wrong server identity), timeout.
 */
export function createRpcClient<S extends GenServiceMethods>(
  service: GenService<S>,
  options: RpcClientOptions,
): RpcClient<S> {
  return buildClient(service, options);
}
