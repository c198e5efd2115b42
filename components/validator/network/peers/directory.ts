import type { Clock } from '#kit/clock/clock.ts';

/** The latest announcement of a validator: directory data, not ledger data. */
interface DirectoryEntry {
  readonly validatorId: string;
  /** host:port of gRPC */
  readonly endpoint: string;
  readonly version: string;
  readonly announcedAtMs: number;
}

/** The endpoints of the validators. */
export interface Directory {
  /** All announced validators; the last known ones while the register service is unavailable. */
  all(): Promise<readonly DirectoryEntry[]>;
  find(validatorId: string): Promise<DirectoryEntry | undefined>;
}

const freshMs = 1_000;

/** The directory of the register service, requested at most once a second. */
export function createDirectory(list: () => Promise<readonly DirectoryEntry[]>, clock: Clock): Directory {
  let known: readonly DirectoryEntry[] = [];
  let requestedAtMs = Number.NEGATIVE_INFINITY;
  let request: Promise<readonly DirectoryEntry[]> | undefined;

  async function refresh(): Promise<readonly DirectoryEntry[]> {
    try {
      known = await list();
    } catch {
      // the last known entries remain valid until the register service answers again
    } finally {
      // measured from the end of the request, so that a caller that waited through an outage does not wait again
      requestedAtMs = clock.nowMs();
      request = undefined;
    }
    return known;
  }

  const all = (): Promise<readonly DirectoryEntry[]> => {
    if (request !== undefined) return request;
    if (clock.nowMs() - requestedAtMs < freshMs) return Promise.resolve(known);
    request = refresh();
    return request;
  };
  return {
    all,
    find: async (validatorId) => (await all()).find((entry) => entry.validatorId === validatorId),
  };
}
