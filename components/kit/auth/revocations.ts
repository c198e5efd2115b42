import { AppError } from '#core/errors/errors.ts';
import { SUBJECTS } from '#core/events/subjects.ts';
import type { Caller } from '#core/identity/claims.ts';
import type { Bus } from '#kit/bus/bus.ts';
import type { Clock } from '#kit/clock/clock.ts';
import { type Follower, followLog } from '#kit/events/follow.ts';
import type { Logger } from '#kit/log/log.ts';

const pollEveryMs = 500;
const staleAfterMs = 60_000;
const firstSnapshotTimeoutMs = 30_000;
const pruneEveryMs = 60_000;

export type RevocationKind = 'token' | 'family' | 'identity' | 'platform_user' | 'organization';

export interface Revocation {
  readonly kind: RevocationKind;
  /** jti, sid, sub, platform_user_id or org_id. */
  readonly key: string;
  /**
   * Tokens issued at or before this instant are revoked, milliseconds since the epoch; not read for token and family.
   */
  readonly notBeforeMs: number;
  /** Time from which no valid token can match any more, milliseconds since the epoch. */
  readonly expiresAtMs: number;
}

/** Position in the tenant service's revocation log. */
export interface RevocationCursor {
  readonly transactionId: bigint;
  readonly sequence: bigint;
}

export interface RevocationPage {
  readonly revocations: readonly Revocation[];
  readonly next: RevocationCursor | undefined;
  /** False when the next page can be read at once. */
  readonly complete: boolean;
}

export interface RevocationSource {
  /** Revocations after the cursor, oldest first; without a cursor, all that are in force. */
  list(cursor: RevocationCursor | undefined): Promise<RevocationPage>;
}

export interface RevocationView {
  /**
   * Starts polling; resolves with the first complete snapshot.
   * Errors: unavailable/REVOCATIONS_STALE after 30 s without one (polling continues until stop).
   */
  start(): Promise<void>;
  stop(): void;
  /** Whether the caller's token, its family, person, organisation or principal is revoked. */
  isRevoked(caller: Caller): boolean;
  /** Errors: unavailable/REVOCATIONS_STALE without a snapshot younger than 60 s. Also the readiness check. */
  assertFresh(): void;
}

export interface RevocationViewOptions {
  readonly source: RevocationSource;
  /** Its wake signals shorten the wait for the next poll; optional. */
  readonly bus?: Bus | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds; default 500. */
  readonly pollMs?: number;
}

/**
 * A copy of the revocations in force, at most half a second old. It fails closed: without a snapshot, or with one older
 * than 60 s, requests are refused with 503 and the service is not ready.
 */
export function createRevocationView(options: RevocationViewOptions): RevocationView {
  return new PolledView(options);
}

interface Entry {
  notBeforeMs: number;
  expiresAtMs: number;
}

class PolledView implements RevocationView {
  readonly #options: RevocationViewOptions;
  readonly #entries: Readonly<Record<RevocationKind, Map<string, Entry>>> = {
    token: new Map(),
    family: new Map(),
    identity: new Map(),
    platform_user: new Map(),
    organization: new Map(),
  };
  readonly #first = Promise.withResolvers<void>();
  #cursor: RevocationCursor | undefined;
  #freshAtMs: number | undefined;
  #prunedAtMs = 0;
  #follower: Follower | undefined;

  constructor(options: RevocationViewOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#follower ??= this.#follow();
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(stale()), firstSnapshotTimeoutMs);
    try {
      await Promise.race([this.#first.promise, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  stop(): void {
    void this.#follower?.stop();
    this.#follower = undefined;
  }

  assertFresh(): void {
    const ageMs = this.#options.clock.nowMs() - (this.#freshAtMs ?? Number.NEGATIVE_INFINITY);
    if (ageMs > staleAfterMs) throw stale();
  }

  isRevoked(caller: Caller): boolean {
    const { token, family, identity, platform_user: platformUser, organization } = this.#entries;
    const dead = (entries: Map<string, Entry>, key: string | undefined): boolean => {
      const entry = key === undefined ? undefined : entries.get(key);
      return entry !== undefined && caller.issuedAtMs <= entry.notBeforeMs;
    };
    const ended = (sessionId: string | undefined) => sessionId !== undefined && family.has(sessionId);
    const { delegation } = caller;
    return (
      token.has(caller.tokenId) ||
      ended(caller.sessionId) ||
      ended(delegation?.sessionId) ||
      dead(identity, caller.subject) ||
      dead(identity, delegation?.userId) ||
      dead(platformUser, delegation?.platformUserId) ||
      dead(platformUser, caller.platformUserId) ||
      dead(organization, caller.organizationId) ||
      dead(organization, delegation?.organizationId)
    );
  }

  /** The pause after a failure does not grow: requests are refused 60 s after the last answer. */
  #follow(): Follower {
    const { bus, log, pollMs = pollEveryMs } = this.#options;
    return followLog({
      readPage: () => this.#readPage(),
      bus,
      subject: SUBJECTS.tenantRevocations,
      pollMs,
      log,
      report: (error) => ({ level: 'warn', fields: { err: error }, message: 'revocations cannot be read' }),
      recovered: 'revocations are read again',
    });
  }

  async #readPage(): Promise<boolean> {
    const askedAtMs = this.#options.clock.nowMs();
    const { revocations, next, complete } = await this.#options.source.list(this.#cursor);
    for (const revocation of revocations) this.#add(revocation);
    this.#cursor = next ?? this.#cursor;
    if (complete) this.#complete(askedAtMs);
    return complete;
  }

  /** The view has every revocation up to the request of the last page. */
  #complete(askedAtMs: number): void {
    this.#freshAtMs = askedAtMs;
    this.#first.resolve();
    this.#prune(askedAtMs);
  }

  #add({ kind, key, notBeforeMs, expiresAtMs }: Revocation): void {
    const entries = this.#entries[kind];
    const before = entries.get(key);
    entries.set(key, {
      notBeforeMs: Math.max(notBeforeMs, before?.notBeforeMs ?? notBeforeMs),
      expiresAtMs: Math.max(expiresAtMs, before?.expiresAtMs ?? expiresAtMs),
    });
  }

  #prune(nowMs: number): void {
    if (nowMs - this.#prunedAtMs < pruneEveryMs) return;
    this.#prunedAtMs = nowMs;
    for (const entries of Object.values(this.#entries)) {
      for (const [key, entry] of entries) {
        // Kept a minute longer than stated, because verifiers tolerate clock skew.
        if (entry.expiresAtMs + pruneEveryMs < nowMs) entries.delete(key);
      }
    }
  }
}

function stale(): AppError {
  return new AppError(
    'unavailable',
    'REVOCATIONS_STALE',
    'revocations of tokens are not known well enough to accept a token',
    { retryAfterSeconds: 5 },
  );
}
