import type { Job } from '#kit/clock/jobs.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { CredentialDatabase } from '../database/schema.ts';
import type { Registers, SignedTransaction } from '../ledger/registers.ts';
import { deleteChange, keepTransaction, takeDue, tryAgain, type UnrecordedChange } from './store.ts';
import { type SignChangeDeps, signChange } from './transaction.ts';

interface RecordDeps extends SignChangeDeps {
  readonly db: Database<CredentialDatabase>;
  readonly registers: Registers;
  readonly log: Logger;
}

const everyMs = 1_000;
const mostAtOnce = 50;
/** How long a replica has to record what it took. */
const heldMs = 60_000;
/** Time that is left for the change that it begins last; another replica takes what it does not begin. */
const lastMs = 30_000;
/** Time until a pending transaction is looked at again. */
const pendingMs = 2_000;
const longestWaitMs = 15 * 60_000;

/**
 * Records changes of statuses on their registers, once a second. The signed transaction is stored before it is submitted,
 * and a change is forgotten when it is sealed: a repetition, by any replica, adds nothing. One that validators refuse, as
 * for its age after a long outage, is signed anew.
 */
export function recordChanges(deps: RecordDeps): Job {
  return {
    name: 'recorded-statuses',
    everyMs,
    run: async (signal) => {
      const now = new Date(deps.clock.nowMs());
      const until = new Date(now.getTime() + heldMs);
      const due = await deps.db.transact((tx) => takeDue(tx, { now, until, most: mostAtOnce }));
      for (const change of due) {
        if (signal.aborted || deps.clock.nowMs() > until.getTime() - lastMs) return;
        await record(deps, change);
      }
    },
  };
}

async function record(deps: RecordDeps, change: UnrecordedChange): Promise<void> {
  const { db, clock, log } = deps;
  const at = (waitMs: number) => new Date(clock.nowMs() + waitMs);
  try {
    const isSealed = await advance(deps, change);
    await db.transact((tx) =>
      isSealed
        ? deleteChange(tx, change.id)
        : tryAgain(tx, change.id, { tries: change.tries, at: at(pendingMs) }),
    );
  } catch (error) {
    const tries = change.tries + 1;
    const waitMs = Math.min(everyMs * 2 ** tries, longestWaitMs);
    const { credentialId, registerId } = change;
    log.warn({ err: error, credentialId, registerId, tries }, 'a change of a status is not recorded yet');
    await db.transact((tx) => tryAgain(tx, change.id, { tries, at: at(waitMs) }));
  }
}

/** One step towards the seal; whether it is sealed. */
async function advance(deps: RecordDeps, change: UnrecordedChange): Promise<boolean> {
  const transaction = change.transaction ?? (await sign(deps, change));
  const state = await deps.registers.stateOf(change.registerId, transaction.id);
  if (state === 'sealed') return true;
  if (state === 'pending') return false;
  const refused = state === 'refused' ? 'REJECTED' : await deps.registers.submit(transaction);
  if (refused === undefined) return false;
  await deps.db.transact((tx) => keepTransaction(tx, change.id, undefined));
  throw new Error(`the register refused the transaction: ${refused}`);
}

async function sign(deps: RecordDeps, change: UnrecordedChange): Promise<SignedTransaction> {
  const transaction = await signChange(deps, change);
  await deps.db.transact((tx) => keepTransaction(tx, change.id, transaction));
  return transaction;
}
