import { isAppError } from '#core/errors/errors.ts';
import type { Job } from '#kit/clock/jobs.ts';
import type { Logger } from '#kit/log/log.ts';
import { findOrganization } from '../../../organizations/store.ts';
import { type EnrolDeps, enrol } from '../enrol.ts';
import { listCertificates } from '../store.ts';
import { endRequest, type RequestedEnrolment, repeatRequest, takeRequested } from './store.ts';

interface AutomaticDeps extends EnrolDeps {
  readonly log: Logger;
}

const everyMs = 2_000;
const mostAtOnce = 20;
/** How long a replica has for what it took. */
const heldMs = 60_000;
/** The last of them is about an hour after the first. */
const mostTries = 11;

/**
 * Enrols the first wallet of each organisation, every two seconds. It is a convenience and hinders nothing: what the wallet
 * or its key does not allow ends the request, an outage repeats it for about an hour, and Administrators may enrol at any
 * time themselves.
 */
export function enrolFirstWallets(deps: AutomaticDeps): Job {
  return {
    name: 'first-enrolments',
    everyMs,
    run: async (signal) => {
      const now = new Date(deps.clock.nowMs());
      const until = new Date(now.getTime() + heldMs);
      const due = await deps.db.transact((tx) => takeRequested(tx, { now, until, most: mostAtOnce }));
      for (const request of due) {
        if (signal.aborted) return;
        await enrolOne(deps, request);
      }
    },
  };
}

async function enrolOne(deps: AutomaticDeps, request: RequestedEnrolment): Promise<void> {
  const { db, clock, log } = deps;
  const { organizationId, walletAddress } = request;
  try {
    const organization = await findOrganization(db.read, organizationId);
    const [present] = await listCertificates(db.read, organizationId, 1);
    if (organization !== undefined && present === undefined)
      await enrol(deps, walletAddress, { organization, caller: undefined, origin: undefined });
    await db.transact((tx) => endRequest(tx, organizationId));
  } catch (error) {
    const tries = request.tries + 1;
    const mayRepeat = !isAppError(error) || error.kind === 'unavailable' || error.kind === 'timeout';
    const isLast = !mayRepeat || tries >= mostTries;
    log.warn(
      { err: error, organizationId, walletAddress, tries },
      isLast
        ? 'the first wallet was not enrolled; an Administrator may'
        : 'the first wallet is not enrolled yet',
    );
    const at = new Date(clock.nowMs() + everyMs * 2 ** tries);
    await db.transact((tx) =>
      isLast ? endRequest(tx, organizationId) : repeatRequest(tx, organizationId, { tries, at }),
    );
  }
}
