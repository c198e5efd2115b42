import type { Api, ApiRequest } from '../api.ts';
import { ApiError, type Refusal } from '../errors.ts';
import type { Timing } from '../time.ts';
import { answer } from './answer.ts';
import { type ClusterState, Refused } from './cluster-state.ts';

/** What becomes of one call: how long each way takes, and whether question or answer are lost. */
export interface Weather {
  readonly thereMs?: number;
  readonly backMs?: number;
  readonly lost?: 'question' | 'answer';
}

export interface DirectApi extends Api {
  readonly calls: ApiRequest[];
  weather: (request: ApiRequest) => Weather;
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
  const api: DirectApi = {
    calls: [],
    weather: () => ({}),
    call: (request) => {
      const leftMs = request.guard?.() ?? Infinity;
      api.calls.push(request);
      const timeoutMs = Math.min(request.timeoutMs ?? 30_000, leftMs);
      return travel(timing, { request, timeoutMs, network, ...api.weather(request) }, () =>
        perform(state, request),
      );
    },
    watch: () => Promise.reject(new Error('watches need a server')),
  };
  return api;
}

interface Journey extends Weather {
  readonly request: ApiRequest;
  readonly timeoutMs: number;
  readonly network: Timing;
}

function travel(timing: Timing, journey: Journey, act: () => unknown): Promise<unknown> {
  const { request, timeoutMs, network, thereMs = 0, backMs = 0, lost } = journey;
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const fail = () => reject(request.signal?.reason);
  if (request.signal?.aborted === true) fail();
  request.signal?.addEventListener('abort', fail, { once: true });
  timing.after(timeoutMs, () => reject(new ApiError('Network', request, 'no answer')));
  network.after(thereMs, () => {
    if (lost === 'question') return;
    let finish: () => void;
    try {
      const body = structuredClone(act());
      finish = () => resolve(body);
    } catch (error) {
      finish = () => reject(error);
    }
    if (lost !== 'answer') network.after(backMs, () => void timing.after(0, finish));
  });
  return promise.finally(() => request.signal?.removeEventListener('abort', fail));
}

function perform(state: ClusterState, request: ApiRequest): unknown {
  const { resource, namespace, name, subresource, query = {}, contentType = 'application/json' } = request;
  const { group, version, plural } = resource;
  const target = { group, version, plural, namespace, name, subresource };
  const body = structuredClone(request.body);
  try {
    return answer(state, { method: methods[request.verb], target, query, contentType, body });
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const refusal = error.reason as Refusal;
    throw new ApiError(refusal, request, error.message, { status: error.status, cause: error });
  }
}
