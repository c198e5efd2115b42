import type { Clock } from '#kit/clock/clock.ts';
import type { Principal } from './principal.ts';

/** Time for which a replica mints from a cached principal when a change notification is lost. */
export const freshMs = 2_000;
/** Bounds the entries that requests with invented client ids can create. */
const maxEntries = 4_096;

/** A short-lived cache of principals by client id, so that a mint needs no database read. */
export interface PrincipalDirectory {
  find(clientId: string): Promise<Principal | undefined>;
  /** The cached principal while it is fresh; undefined means that `find` must be called. */
  peek(clientId: string): Principal | undefined;
  /** Clears the cache after a change of any principal. */
  invalidate(): void;
}

interface Entry {
  readonly principal: Promise<Principal | undefined>;
  settled: Principal | undefined;
  readonly readAtMs: number;
}

export function createPrincipalDirectory(
  load: (clientId: string) => Promise<Principal | undefined>,
  clock: Clock,
): PrincipalDirectory {
  let entries = new Map<string, Entry>();
  const fresh = (clientId: string) => {
    const entry = entries.get(clientId);
    return entry !== undefined && clock.nowMs() - entry.readAtMs < freshMs ? entry : undefined;
  };
  return {
    find(clientId) {
      const cached = fresh(clientId);
      if (cached !== undefined) return cached.principal;
      if (entries.size >= maxEntries) entries = new Map();
      const into = entries;
      const principal = load(clientId);
      const entry: Entry = { principal, settled: undefined, readAtMs: clock.nowMs() };
      into.set(clientId, entry);
      principal.then(
        (found) => {
          entry.settled = found;
        },
        () => into.delete(clientId),
      );
      return principal;
    },
    peek: (clientId) => fresh(clientId)?.settled,
    invalidate() {
      entries = new Map();
    },
  };
}
