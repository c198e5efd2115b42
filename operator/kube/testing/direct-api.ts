import type { Timing } from '#kit/clock/timing.ts';
import type { Api, ApiRequest } from '../api.ts';
import { ApiError, statusReasonOf } from '../errors.ts';
import { answer, statusBody } from './answer.ts';
import { type ClusterState, StatusError } from './cluster-state.ts';
import { type DirectWatch, openDirectWatch } from './direct-watch.ts';

/** Network behaviour for one call: delays in milliseconds, and loss of the request or the response. */
export interface Delivery {
  readonly requestMs?: number;
  readonly responseMs?: number;
  /** Lost without an error; the caller runs into its timeout. */
  readonly lost?: 'request' | 'response';
  /** Lost with a connection error, which the caller notices at once. */
  readonly broken?: 'request' | 'response';
  /** The API server refuses the call with this error. */
  readonly refused?: StatusError;
  readonly retryAfterMs?: number;
}

export interface DirectApi extends Api {
  readonly calls: ApiRequest[];
  /** The API server's implementation; throws StatusError. */
  serve: (request: ApiRequest) => unknown;
  delivery: (request: ApiRequest) => Delivery;
  /** Delay of watch events. */
  lagMs: () => number;
  /** Open watches. */
  readonly watches: ReadonlySet<DirectWatch>;
}

const methods = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
};

/**
 * A cluster without sockets, for tests with a manual clock: deadlines, losses and delays. The network has a separate clock,
 * so that a sent request arrives although its process is frozen.
 */
export function directApi(state: ClusterState, timing: Timing, network: Timing = timing): DirectApi {
  const watches = new Set<DirectWatch>();
  const api: DirectApi = {
    calls: [],
    serve: (request) => perform(state, request),
    delivery: () => ({}),
    lagMs: () => 0,
    watches,
    call: (request) => {
      const leftMs = request.guard?.() ?? Infinity;
      api.calls.push(request);
      const timeoutMs = Math.min(request.timeoutMs ?? 30_000, leftMs);
      return deliver(timing, { request, timeoutMs, network, ...api.delivery(request) }, () =>
        structuredClone(api.serve(request)),
      );
    },
    watch: (request) => {
      api.calls.push(request);
      const open = () => {
        const watch = openDirectWatch({ state, timing, network, request, lagMs: () => api.lagMs() });
        watches.add(watch);
        request.signal?.addEventListener('abort', () => watches.delete(watch), { once: true });
        return watch.pieces;
      };
      return deliver(timing, { request, timeoutMs: 30_000, network, ...api.delivery(request) }, open);
    },
  };
  return api;
}

interface PendingCall extends Delivery {
  readonly request: ApiRequest;
  readonly timeoutMs: number;
  readonly network: Timing;
}

function deliver<T>(timing: Timing, call: PendingCall, act: () => T): Promise<T> {
  const { request, timeoutMs, network, requestMs = 0, responseMs = 0, lost, broken } = call;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const fail = () => reject(request.signal?.reason);
  if (request.signal?.aborted === true) fail();
  request.signal?.addEventListener('abort', fail, { once: true });
  const endWait = timing.after(timeoutMs, () => reject(new ApiError('Network', request, 'no answer')));
  const breaks = () => reject(new ApiError('Network', request, 'the connection broke'));
  network.after(requestMs, () => {
    if (lost === 'request') return;
    const finish = broken === 'request' ? breaks : responseOf(call, act, { resolve, reject });
    const respond = broken === 'response' ? breaks : finish;
    if (lost !== 'response') network.after(responseMs, () => void timing.after(0, respond));
  });
  return promise.finally(() => {
    endWait();
    request.signal?.removeEventListener('abort', fail);
  });
}

/** Carries out a call and returns a function that settles the caller's promise. */
function responseOf<T>(
  { request, refused, retryAfterMs }: PendingCall,
  act: () => T,
  { resolve, reject }: { readonly resolve: (body: T) => void; readonly reject: (error: unknown) => void },
): () => void {
  try {
    if (refused !== undefined) throw refused;
    const body = act();
    return () => resolve(body);
  } catch (error) {
    return () => reject(error instanceof StatusError ? apiErrorOf(request, error, retryAfterMs) : error);
  }
}

function apiErrorOf(request: ApiRequest, error: StatusError, retryAfterMs?: number): ApiError {
  const refusal = statusReasonOf(error.status, statusBody(error));
  return new ApiError(refusal, request, error.message, { status: error.status, retryAfterMs, cause: error });
}

/**
 * Carries out a call on the state of the cluster.
 * @throws StatusError
 */
export function perform(state: ClusterState, request: ApiRequest): unknown {
  const { resource, namespace, name, subresource, query = {}, contentType = 'application/json' } = request;
  const { group, version, plural } = resource;
  const target = { group, version, plural, namespace, name, subresource };
  const body = structuredClone(request.body);
  return answer(state, { method: methods[request.verb], target, query, contentType, body });
}
