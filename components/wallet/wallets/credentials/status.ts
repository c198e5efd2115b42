import { isAppError } from '#core/errors/errors.ts';
import type { Job } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import type { WalletDatabase } from '../../database/schema.ts';
import { announceCredentialStatus } from '../holder/announce.ts';
import { getWallet } from '../records/store.ts';
import type { CredentialJudge } from './judge.ts';
import { findCredential, type HeldCredential, takeUnchecked, writeStatus } from './store.ts';

export interface StatusDeps {
  readonly db: Database<WalletDatabase>;
  readonly judge: CredentialJudge;
  readonly clock: { nowMs(): number };
  readonly notify: () => void;
}

type CredentialStatus = HeldCredential['listedStatus'] | 'Expired';

/** The status that a holder sees. */
export function statusOf(
  { listedStatus, expiresAtMs }: Pick<HeldCredential, 'listedStatus' | 'expiresAtMs'>,
  nowMs: number,
): CredentialStatus {
  if (listedStatus === 'Revoked') return 'Revoked';
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'Expired' : listedStatus;
}

/** The credential service keeps lists for as long as their issuers allow, so asking again is cheap. */
const freshMs = 10_000;
const everyMs = 60_000;
const checkedAgainMs = 15 * 60_000;
const checkedAtOnce = 100;
const side = 8;

/**
 * Asks the issuer's list for the status of credentials that were not checked within the last ten seconds. What cannot be
 * learnt leaves them as they are.
 * @returns the credentials as they are now
 */
export async function withFreshStatus(
  deps: StatusDeps,
  credentials: readonly HeldCredential[],
): Promise<readonly HeldCredential[]> {
  const nowMs = deps.clock.nowMs();
  const isDue = ({ listedStatus, statusReference, statusCheckedAtMs }: HeldCredential) =>
    listedStatus !== 'Revoked' && statusReference !== undefined && statusCheckedAtMs + freshMs <= nowMs;
  const due = credentials.filter(isDue);
  if (due.length === 0) return credentials;
  for (let from = 0; from < due.length; from += side)
    await Promise.all(due.slice(from, from + side).map((each) => checkIfPossible(deps, each)));
  const found = await Promise.all(
    credentials.map((each) => (isDue(each) ? findCredential(deps.db.read, each.walletId, each.id) : each)),
  );
  return found.filter((each) => each !== undefined);
}

/** Learns the statuses of credentials now and then, so that their holders hear of changes. */
export function statusJob(deps: StatusDeps): Job {
  return {
    name: 'credential-statuses',
    everyMs,
    run: async (signal) => {
      const now = new Date(deps.clock.nowMs());
      const before = new Date(now.getTime() - checkedAgainMs);
      const due = await deps.db.transact((tx) => takeUnchecked(tx, { before, now, most: checkedAtOnce }));
      let outage: unknown;
      for (const each of due) {
        if (signal.aborted) return;
        // The authority of one credential may be away: the others are checked all the same.
        await check(deps, each).catch((error: unknown) => {
          if (!isAppError(error, 'unavailable')) throw error;
          outage ??= error;
        });
      }
      if (outage !== undefined) throw outage;
    },
  };
}

/** A service that is away is no reason to hide credentials from their holder. */
async function checkIfPossible(deps: StatusDeps, credential: HeldCredential): Promise<void> {
  try {
    await check(deps, credential);
  } catch (error) {
    if (!isAppError(error, 'unavailable')) throw error;
  }
}

async function check(deps: StatusDeps, credential: HeldCredential): Promise<void> {
  const { id, walletId, issuerClaim, format, statusReference } = credential;
  const { status, isTrusted, reason } = await deps.judge.judgeIssuer(issuerClaim, {
    isDocument: format === 'mso_mdoc',
    status: statusReference,
  });
  const wallet = await getWallet(deps.db.read, walletId);
  const at = new Date(deps.clock.nowMs());
  const isNews = await deps.db.transact(async (tx) => {
    const changed = await writeStatus(tx, id, { status, isTrusted, reason, at });
    if (changed) await announceCredentialStatus(tx, { wallet, credentialId: id });
    return changed;
  });
  if (isNews) deps.notify();
}
