import type { Api, ApiRequest } from '../api.ts';
import { ApiError, refusalOf } from '../errors.ts';
import type { Timing } from '../time.ts';
import { answer, statusBody } from './answer.ts';
import { type ClusterState, Refused } from './cluster-state.ts';
import { type DirectWatch, openDirectWatch } from './direct-watch.ts';

/** What becomes of one call: how long each way takes, and whether question or answer are lost. */
export interface Weather {
  readonly thereMs?: number;
  readonly backMs?: number;
  /** Nobody hears of it again. */
  readonly lost?: 'question' | 'answer';
  /** As `lost`, and the caller notices at once: the connection breaks. */
  readonly broken?: 'question' | 'answer';
  /** The API server answers with this and does nothing. */
  readonly refused?: Refused;
  readonly retryAfterMs?: number;
}

export interface DirectApi extends Api {
  readonly calls: ApiRequest[];
  /** What the API server does with a call that arrives; throws Refused. */
  serve: (request: ApiRequest) => unknown;
  weather: (request: ApiRequest) => Weather;
  /** How long an event of a watch is on its way. */
  lagMs: () => number;
  /** Watches that are open. */
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
 * A cluster without sockets, for tests that own time: deadlines, losses and delays on a manual clock. The network has a
 * time of its own: what a process has sent arrives although the process stands still.
 */
export function directApi(state: ClusterState, timing: Timing, network: Timing = timing): DirectApi {
  const watches = new Set<DirectWatch>();
  const api: DirectApi = {
    calls: [],
    serve: (request) => perform(state, request),
    weather: () => ({}),
    lagMs: () => 0,
    watches,
    call: (request) => {
      const leftMs = request.guard?.() ?? Infinity;
      api.calls.push(request);
      const timeoutMs = Math.min(request.timeoutMs ?? 30_000, leftMs);
      return travel(timing, { request, timeoutMs, network, ...api.weather(request) }, () =>
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
      return travel(timing, { request, timeoutMs: 30_000, network, ...api.weather(request) }, open);
    },
  };
  return api;
}

interface Journey extends Weather {
  readonly request: ApiRequest;
  readonly timeoutMs: number;
  readonly network: Timing;
}

function travel<T>(timing: Timing, journey: Journey, act: () => T): Promise<T> {
  const { request, timeoutMs, network, thereMs = 0, backMs = 0, lost, broken } = journey;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const fail = () => reject(request.signal?.reason);
  if (request.signal?.aborted === true) fail();
  request.signal?.addEventListener('abort', fail, { once: true });
  const endWait = timing.after(timeoutMs, () => reject(new ApiError('Network', request, 'no answer')));
  const breaks = () => reject(new ApiError('Network', request, 'the connection broke'));
  network.after(thereMs, () => {
    if (lost === 'question') return;
    const finish = broken === 'question' ? breaks : outcomeOf(journey, act, { resolve, reject });
    const told = broken === 'answer' ? breaks : finish;
    if (lost !== 'answer') network.after(backMs, () => void timing.after(0, told));
  });
  return promise.finally(() => {
    endWait();
    request.signal?.removeEventListener('abort', fail);
  });
}

/** Carries a call out and gives what tells the caller. */
function outcomeOf<T>(
  { request, refused, retryAfterMs }: Journey,
  act: () => T,
  { resolve, reject }: { readonly resolve: (body: T) => void; readonly reject: (error: unknown) => void },
): () => void {
  try {
    if (refused !== undefined) throw refused;
    const body = act();
    return () => resolve(body);
  } catch (error) {
    return () => reject(error instanceof Refused ? apiErrorOf(request, error, retryAfterMs) : error);
  }
}

function apiErrorOf(request: ApiRequest, error: Refused, retryAfterMs?: number): ApiError {
  const refusal = refusalOf(error.status, statusBody(error));
  return new ApiError(refusal, request, error.message, { status: error.status, retryAfterMs, cause: error });
}

/**
 * What the API server does with a call.
 * @throws Refused
 */
export function perform(state: ClusterState, request: ApiRequest): unknown {
  const { resource, namespace, name, subresource, query = {}, contentType = 'application/json' } = request;
  const { group, version, plural } = resource;
  const target = { group, version, plural, namespace, name, subresource };
  const body = structuredClone(request.body);
  return answer(state, { method: methods[request.verb], target, query, contentType, body });
}
