import type { Clock } from '#kit/clock/clock.ts';

/** What a validator said of itself last: directory data, not ledger data (D21). */
export interface DirectoryEntry {
  readonly validatorId: string;
  /** host:port of gRPC */
  readonly endpoint: string;
  readonly version: string;
  readonly announcedAtMs: number;
}

/** Who validates where. */
export interface Directory {
  /** Everybody who ever announced itself, by id; what was known last while the register service cannot answer. */
  all(): Promise<readonly DirectoryEntry[]>;
  find(validatorId: string): Promise<DirectoryEntry | undefined>;
}

const freshMs = 1_000;

/** The directory of the register service, asked at most once a second. */
export function createDirectory(list: () => Promise<readonly DirectoryEntry[]>, clock: Clock): Directory {
  let known: readonly DirectoryEntry[] = [];
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let asking: Promise<readonly DirectoryEntry[]> | undefined;

  async function ask(): Promise<readonly DirectoryEntry[]> {
    try {
      known = await list();
    } catch {
      // whoever was announced before is where to look until the register service is back
    } finally {
      // from its end: who waited for a service that is away does not wait for it again
      askedAtMs = clock.nowMs();
      asking = undefined;
    }
    return known;
  }

  const all = (): Promise<readonly DirectoryEntry[]> => {
    if (asking !== undefined) return asking;
    if (clock.nowMs() - askedAtMs < freshMs) return Promise.resolve(known);
    asking = ask();
    return asking;
  };
  return {
    all,
    find: async (validatorId) => (await all()).find((entry) => entry.validatorId === validatorId),
  };
}
