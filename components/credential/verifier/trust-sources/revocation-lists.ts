import { judge } from '#core/errors/judgement.ts';
import type { Certificate } from '#core/trust/certificate.ts';
import { revocationListAddresses } from '#core/trust/distribution-points.ts';
import type { RevocationVerdict } from '#core/trust/evaluate.ts';
import {
  isCurrent,
  judgeRevocation,
  type RevocationList,
  verifyRevocationList,
} from '#core/trust/revocation-list.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Job } from '#kit/clock/jobs.ts';
import type { Logger } from '#kit/log/log.ts';
import { type Outbound, OutboundError } from '#kit/outbound/outbound.ts';

/** Bound of a list as it is sent. */
const maxListBytes = 4 * 1024 * 1024;
const timeoutMs = 5_000;
/** Addresses of one certificate that are asked, one after the other. */
const maxAddresses = 3;

/** Bounds of the cache; beyond them the lists that were used least lately are dropped. */
const maxLists = 64;
const maxCachedBytes = 32 * 1024 * 1024;

const refreshEveryMs = 60_000;
/** Age at which a list is read again, unless half of its life is less. */
const maxAgeMs = 3_600_000;
/** Time after a failure in which an address is not asked again. */
const retryAfterMs = 30_000;
/** Time without use after which a list is dropped. */
const unusedMs = 86_400_000;

interface ListDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly outbound: Pick<Outbound, 'send'>;
}

/** A list with the time when it was read. */
interface ReadList {
  readonly list: RevocationList;
  readonly sizeBytes: number;
  readonly readAtMs: number;
}

/** What is known of the list at an address. */
interface Entry {
  readonly address: string;
  readonly issuer: Certificate;
  found: ReadList | undefined;
  usedAtMs: number;
  /** When it failed last; undefined after a success. */
  failedAtMs: number | undefined;
  pending: Promise<void> | undefined;
}

/**
 * Lists of revoked certificates of other authorities, by the addresses in their certificates (RFC 5280 section 4.2.1.13).
 * A list is used until its next update and read again in the background, so that a verification waits for the first
 * reading only. Several verifications wait for one request. Only certificates of valid paths may be asked about: their
 * authorities are trusted to name addresses.
 */
export class RevocationLists {
  readonly #deps: ListDeps;
  /** By issuer and address; the one that was used least lately first. */
  readonly #entries = new Map<string, Entry>();

  constructor(deps: ListDeps) {
    this.#deps = deps;
  }

  /**
   * What the lists of a certificate say.
   * @param issuer the certificate above it in a valid path, or the anchor of the path
   * @returns `Unavailable` when no address gives a list that is about the certificate, current and signed by the issuer
   */
  async verdictOf(certificate: Certificate, issuer: Certificate): Promise<RevocationVerdict> {
    const addresses = judge(() => revocationListAddresses(certificate)).result ?? [];
    for (const address of addresses.slice(0, maxAddresses)) {
      const list = await this.#find(address, issuer);
      const verdict = list === undefined ? 'Unavailable' : judgeRevocation(list, certificate);
      if (verdict !== 'Unavailable') return verdict;
    }
    return 'Unavailable';
  }

  /** Reads lists again that are due, and drops those that are no longer used. */
  refreshing(): Job {
    return {
      name: 'revocation-lists',
      everyMs: refreshEveryMs,
      run: async (signal) => {
        for (const [key, entry] of [...this.#entries]) {
          if (signal.aborted) return;
          const nowMs = this.#deps.clock.nowMs();
          if (nowMs - entry.usedAtMs >= unusedMs) this.#entries.delete(key);
          else if (isDue(entry, nowMs)) await this.#read(entry);
        }
      },
    };
  }

  async #find(address: string, issuer: Certificate): Promise<RevocationList | undefined> {
    const nowMs = this.#deps.clock.nowMs();
    const entry = this.#use(address, issuer, nowMs);
    if (!hasCurrent(entry, nowMs) && (entry.pending !== undefined || mayAsk(entry, nowMs)))
      await this.#read(entry);
    return hasCurrent(entry, this.#deps.clock.nowMs()) ? entry.found?.list : undefined;
  }

  #use(address: string, issuer: Certificate, nowMs: number): Entry {
    const key = `${issuer.thumbprint} ${address}`;
    const entry = this.#entries.get(key) ?? {
      address,
      issuer,
      found: undefined,
      usedAtMs: nowMs,
      failedAtMs: undefined,
      pending: undefined,
    };
    entry.usedAtMs = nowMs;
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    this.#limit();
    return entry;
  }

  /** Drops lists beyond the bounds; the one that was used last stays. */
  #limit(): void {
    let sizeBytes = [...this.#entries.values()].reduce((sum, { found }) => sum + (found?.sizeBytes ?? 0), 0);
    for (const [key, { found }] of [...this.#entries].slice(0, -1)) {
      if (this.#entries.size <= maxLists && sizeBytes <= maxCachedBytes) return;
      this.#entries.delete(key);
      sizeBytes -= found?.sizeBytes ?? 0;
    }
  }

  /** Reads the list of an entry; those who ask meanwhile wait for the same request. */
  async #read(entry: Entry): Promise<void> {
    entry.pending ??= this.#request(entry).finally(() => {
      entry.pending = undefined;
    });
    await entry.pending;
  }

  async #request(entry: Entry): Promise<void> {
    const { clock, log } = this.#deps;
    const { address } = entry;
    const read = await this.#fetch(entry);
    if (typeof read === 'string') {
      if (entry.failedAtMs === undefined)
        log.warn({ address, reason: read }, 'no list of revoked certificates');
      entry.failedAtMs = clock.nowMs();
      return;
    }
    if (entry.failedAtMs !== undefined) log.info({ address }, 'list of revoked certificates is read again');
    entry.failedAtMs = undefined;
    entry.found = read;
    this.#limit();
  }

  /** The list at the address of an entry, or why there is none. */
  async #fetch({ address, issuer, found }: Entry): Promise<ReadList | string> {
    const { clock, outbound } = this.#deps;
    try {
      const limits = { timeoutMs, maxBytes: maxListBytes };
      const { status, body } = await outbound.send(address, { isSigned: true, limits });
      if (status !== 200) return `the server answers ${status}`;
      const readAtMs = clock.nowMs();
      const { violations, result: list } = verifyRevocationList(body, { issuer, atMs: readAtMs });
      if (list === undefined) return violations[0].message;
      // An earlier list that is still current may lack what was revoked since then.
      if (found !== undefined && list.thisUpdateMs < found.list.thisUpdateMs)
        return 'The list of revoked certificates is older than the one before';
      return { list, sizeBytes: body.length, readAtMs };
    } catch (error) {
      if (error instanceof OutboundError) return error.message;
      throw error;
    }
  }
}

function hasCurrent({ found }: Entry, nowMs: number): boolean {
  return found !== undefined && isCurrent(found.list, nowMs);
}

function mayAsk({ failedAtMs }: Entry, nowMs: number): boolean {
  return failedAtMs === undefined || nowMs - failedAtMs >= retryAfterMs;
}

function isDue(entry: Entry, nowMs: number): boolean {
  if (!mayAsk(entry, nowMs)) return false;
  if (entry.found === undefined) return true;
  const { list, readAtMs } = entry.found;
  const halfLifeMs = (list.nextUpdateMs - readAtMs) / 2;
  return nowMs - readAtMs >= Math.min(maxAgeMs, halfLifeMs);
}
