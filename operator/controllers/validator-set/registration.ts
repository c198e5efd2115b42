import type { Timing } from '#kit/clock/timing.ts';
import type { Installation } from '../../api/installation.ts';
import type { Principals } from '../../platform/principals.ts';

/** After this time a principal is ensured again, because another client may have revoked it. */
const verifyAgainMs = 600_000;

/** Ensures a principal for every member, with few calls. */
export class Registration {
  readonly #principals: Principals;
  readonly #timing: Timing;
  /** When a client id was last ensured, by uid of its set. */
  readonly #verifiedAt = new Map<string, Map<string, number>>();

  constructor(principals: Principals, timing: Timing) {
    this.#principals = principals;
    this.#timing = timing;
  }

  /** Ensures all principals of a set. Throws the errors of the tenant service. */
  async ensure(
    setUid: string,
    installation: Installation,
    { ids, signal }: { readonly ids: readonly string[]; readonly signal: AbortSignal },
  ): Promise<void> {
    const verifiedAt = this.#verifiedAt.get(setUid) ?? new Map<string, number>();
    this.#verifiedAt.set(setUid, verifiedAt);
    for (const id of ids) {
      const atMs = verifiedAt.get(id);
      if (atMs !== undefined && this.#timing.monotonicMs() - atMs < verifyAgainMs) continue;
      await this.#principals.upsert(installation, id, signal);
      verifiedAt.set(id, this.#timing.monotonicMs());
    }
  }

  /** Revokes the principals of removed members. Throws the errors of the tenant service. */
  async retire(
    setUid: string,
    installation: Installation,
    { ids, signal }: { readonly ids: readonly string[]; readonly signal: AbortSignal },
  ): Promise<void> {
    for (const id of ids) {
      await this.#principals.revoke(installation, id, signal);
      this.#verifiedAt.get(setUid)?.delete(id);
    }
  }

  forget(setUid: string): void {
    this.#verifiedAt.delete(setUid);
  }
}
