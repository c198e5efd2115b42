import type { RequestInfo } from './errors.ts';

/** One call of the API server. */
export interface ApiRequest extends RequestInfo {
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** `application/json` when absent. */
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
  /** Timeout of one attempt; 30 s when absent. It does not apply to an open watch. */
  readonly timeoutMs?: number;
  /** Bypasses the client's rate limit, for leases. */
  readonly urgent?: boolean;
  /** Retries after a refusal with Retry-After, and after a broken connection of a read; 5 when absent. */
  readonly retries?: number;
  /**
   * Called before every attempt and again right before the request is sent, because the permission may end while it
   * waits.
   * @returns milliseconds that the attempt may take
   * @throws NotLeader, or another error that forbids the call
   */
  readonly guard?: () => number;
}

/** Port to a cluster. */
export interface Api {
  /**
   * Resolves to the parsed body.
   * @throws ApiError for every refusal and for a cluster that does not answer
   */
  call(request: ApiRequest): Promise<unknown>;
  /**
   * Opens a watch; resolves when the API server has accepted it. The chunks end when the server closes the stream, and
   * throw when the stream breaks.
   * @throws ApiError
   */
  watch(request: ApiRequest): Promise<AsyncIterable<Uint8Array>>;
}

const writes = new Set(['create', 'update', 'patch', 'delete']);

/**
 * The same cluster with a guard before every write (see `leader.ts`). Reads are not guarded. The guard is called again
 * before each retry.
 */
export function guarded(api: Api, guard: () => number): Api {
  return {
    call: async (request) => {
      if (!writes.has(request.verb)) return api.call(request);
      guard();
      return api.call({ ...request, guard });
    },
    watch: (request) => api.watch(request),
  };
}
