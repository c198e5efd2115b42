import type { Timing } from '#kit/clock/timing.ts';
import type { ApiRequest } from '../api.ts';
import { ApiError } from '../errors.ts';
import { statusBody } from './answer.ts';
import { type ClusterState, StatusError } from './cluster-state.ts';

/** A watch without sockets. */
export interface DirectWatch {
  readonly pieces: AsyncIterable<Uint8Array>;
  /** Breaks the connection; events in flight are lost. */
  break(): void;
  /** Makes the connection half open: no more events and no error. */
  mute(): void;
}

export interface DirectWatchOptions {
  readonly state: ClusterState;
  /** Clock of the watching process. */
  readonly timing: Timing;
  readonly network: Timing;
  readonly request: ApiRequest;
  /** Delay of an event; the order is kept. */
  readonly lagMs: () => number;
}

const BOOKMARK_MS = 60_000;

/** Opens a watch on an in-memory cluster; an expired version is refused in the stream, as on real servers. */
export function openDirectWatch({ state, timing, network, request, lagMs }: DirectWatchOptions): DirectWatch {
  const { group, version, plural } = request.resource;
  const target = { group, version, plural, namespace: request.namespace };
  const encoder = new TextEncoder();
  const arrived: Uint8Array[] = [];
  let end: { readonly error?: unknown } | undefined;
  let wake: () => void = () => undefined;
  let dueMs = 0;
  let isMute = false;
  const send = (type: string, object: unknown) => {
    dueMs = Math.max(dueMs, network.monotonicMs() + lagMs());
    const piece = encoder.encode(`${JSON.stringify({ type, object })}\n`);
    network.after(dueMs - network.monotonicMs(), () =>
      timing.after(0, () => {
        if (end !== undefined || isMute) return;
        arrived.push(piece);
        wake();
      }),
    );
  };
  const from = Number(request.query?.['resourceVersion']);
  const forget = state.watch(target, from, ({ type, object }) => send(type, object));
  if (forget === undefined) send('ERROR', statusBody(new StatusError(410, 'Expired')));
  const close = (error?: unknown) => {
    end ??= { error };
    forget?.();
    endBookmarks();
    wake();
  };
  const bookmark = () => {
    send('BOOKMARK', { metadata: { resourceVersion: String(state.version) } });
    endBookmarks = network.after(BOOKMARK_MS, bookmark);
  };
  let endBookmarks = network.after(BOOKMARK_MS, bookmark);
  request.signal?.addEventListener('abort', () => close(request.signal?.reason), { once: true });
  async function* read(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = arrived.shift();
      if (piece !== undefined) yield piece;
      else if (end !== undefined) throw end.error;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }
  return {
    pieces: read(),
    mute: () => {
      isMute = true;
    },
    break: () => close(new ApiError('Network', request, 'the connection broke')),
  };
}
