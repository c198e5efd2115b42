import type { Clock } from '#kit/clock/clock.ts';
import type { Principal } from './principal.ts';

/** How long a replica may mint from what it knows when the doorbell is not heard. */
export const freshMs = 2_000;
/** Bounds what callers with invented names can make us remember. */
const maxEntries = 4_096;

/** Principals by client id, remembered shortly: a mint costs no database read. */
export interface PrincipalDirectory {
  find(clientId: string): Promise<Principal | undefined>;
  /** The principal when it is remembered and fresh; undefined says only that `find` must be asked. */
  peek(clientId: string): Principal | undefined;
  /** Forgets everything: some principal changed. */
  invalidate(): void;
}

interface Entry {
  readonly principal: Promise<Principal | undefined>;
  known: Principal | undefined;
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
      const known = fresh(clientId);
      if (known !== undefined) return known.principal;
      if (entries.size >= maxEntries) entries = new Map();
      const into = entries;
      const principal = load(clientId);
      const entry: Entry = { principal, known: undefined, readAtMs: clock.nowMs() };
      into.set(clientId, entry);
      principal.then(
        (found) => {
          entry.known = found;
        },
        () => into.delete(clientId),
      );
      return principal;
    },
    peek: (clientId) => fresh(clientId)?.known,
    invalidate() {
      entries = new Map();
    },
  };
}
