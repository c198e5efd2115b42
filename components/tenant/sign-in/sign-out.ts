import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import { appendAudit } from '../audit/log/store.ts';
import type { TenantDatabase } from '../database/schema.ts';
import type { Origin } from '../requests/origin.ts';
import { endTokens } from '../tokens/sessions/end-tokens.ts';

export interface SignOutDeps {
  readonly db: Database<TenantDatabase>;
  readonly clock: Clock;
  /** Notifies all services of new revocations. */
  readonly notify: () => void;
}

/** Ends the presented token and its refresh family. */
export async function signOut(deps: SignOutDeps, by: Caller, origin: Origin): Promise<void> {
  const { sessionId } = by;
  const reason = 'logout';
  await deps.db.transact(async (tx) => {
    const atMs = deps.clock.nowMs();
    await endTokens(tx, { kind: 'token', key: by.tokenId, reason, atMs });
    if (sessionId !== undefined) {
      await endTokens(tx, { kind: 'family', key: sessionId, families: { id: sessionId }, reason, atMs });
    }
    await appendAudit(tx, {
      organizationId: by.organizationId ?? SYSTEM_ORGANIZATION_ID,
      occurredAtMs: atMs,
      type: 'Logout',
      identityId: by.kind === 'user' ? by.subject : undefined,
      platformUserId: by.platformUserId,
      origin,
      success: true,
      details: { reason, by: by.clientId },
    });
  });
  deps.notify();
}
