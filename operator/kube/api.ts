import type { Asked } from './errors.ts';

/** One call of the API server. */
export interface ApiRequest extends Asked {
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** `application/json` when absent. */
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
  /** For one try; 30 s when absent. A watch ends by other means. */
  readonly timeoutMs?: number;
  /** Goes past the client's own rate limit: for a lease, whose loss would cost more. */
  readonly urgent?: boolean;
  /** Tries after a refusal that names a time, and after a broken connection of a read; 5 when absent. */
  readonly retries?: number;
  /**
   * Asked before every try, and once more when a connection takes it: whoever waits may be stopped meanwhile.
   * @returns milliseconds that the try may take
   * @throws whatever forbids the call
   */
  readonly guard?: () => number;
}

/** The door to a cluster. */
export interface Api {
  /**
   * Resolves to the parsed body.
   * @throws ApiError for every refusal and for a cluster that does not answer
   */
  call(request: ApiRequest): Promise<unknown>;
  /**
   * Opens a watch; resolves when the API server accepted it. The pieces end when the server closes the stream in good
   * order, and throw when it breaks.
   * @throws ApiError
   */
  watch(request: ApiRequest): Promise<AsyncIterable<Uint8Array>>;
}

const writes = new Set(['create', 'update', 'patch', 'delete']);

/**
 * The same cluster, whose every write passes a guard (see `leader.ts`); reads pass freely.
 * A write that waits for a retry is guarded again before each try.
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
