import { randomUUIDv7 } from 'node:crypto';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Logger } from '#kit/log/log.ts';
import type { OwnWallets } from '../clients/own-wallets.ts';
import type { BlueprintDatabase } from '../database/schema.ts';
import type { DesignerMeter } from '../definitions/publishing/metrics.ts';
import type { InstanceState } from '../instances/instance.ts';
import { findInstance } from '../instances/store.ts';
import { endRehearsal, findRehearsal, type Rehearsal, type RehearsalStatus, storeErased } from './store.ts';

export interface EndDeps {
  readonly db: Database<BlueprintDatabase>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ownWallets: Pick<OwnWallets, 'erase'>;
  readonly meter: Pick<DesignerMeter, 'rehearsed'>;
}

/** Name of the wallet of a role, by its place among the participants. */
export function walletName(rehearsalId: string, role: number): string {
  return `rehearsal-${rehearsalId}-${role}`;
}

/** Ends a rehearsal that is under way and erases its keys; one that has ended stays as it ended. */
export async function end(
  deps: EndDeps,
  rehearsal: Rehearsal,
  status: Exclude<RehearsalStatus, 'InProgress'>,
): Promise<void> {
  const at = new Date(deps.clock.nowMs());
  const hasEnded = await deps.db.transact((tx) =>
    endRehearsal(tx, rehearsal, { status, passId: randomUUIDv7(), at }),
  );
  if (!hasEnded) return;
  deps.meter.rehearsed(status, (at.getTime() - rehearsal.startedAt.getTime()) / 1_000);
  await tryErasing(deps, rehearsal);
}

/** Erases the keys of wallets that were made while their rehearsal ended. */
export async function eraseAgain(deps: EndDeps, rehearsal: Rehearsal): Promise<void> {
  await deps.db.transact((tx) => storeErased(tx, rehearsal.id, null));
  await tryErasing(deps, rehearsal);
}

/** An outage leaves the keys to the job. */
async function tryErasing(deps: EndDeps, rehearsal: Rehearsal): Promise<void> {
  await eraseWallets(deps, rehearsal).catch((error: unknown) =>
    deps.log.warn({ err: error, rehearsalId: rehearsal.id }, 'the keys of a rehearsal are erased later'),
  );
}

/** Erases the keys of an ended rehearsal. Errors: unavailable. */
export async function eraseWallets(
  { db, clock, ownWallets }: Pick<EndDeps, 'db' | 'clock' | 'ownWallets'>,
  { id, roles }: Rehearsal,
): Promise<void> {
  await ownWallets.erase(Array.from({ length: roles }, (_, role) => walletName(id, role)));
  await db.transact((tx) => storeErased(tx, id, new Date(clock.nowMs())));
}

const outcomes: Partial<Record<InstanceState, 'Passed' | 'Failed'>> = {
  Completed: 'Passed',
  Failed: 'Failed',
};

/** Ends a rehearsal whose instance has ended; resolves to the rehearsal as it is then. */
export async function settle(deps: EndDeps, rehearsal: Rehearsal): Promise<Rehearsal> {
  const { stage, status, id } = rehearsal;
  if (stage === undefined || status !== 'InProgress') return rehearsal;
  const now = new Date(deps.clock.nowMs());
  const instance = await findInstance(deps.db.read, stage.registerId, stage.instanceId, now);
  const outcome = instance && outcomes[instance.state];
  if (outcome === undefined) return rehearsal;
  await end(deps, rehearsal, outcome);
  return (await findRehearsal(deps.db.read, id)) ?? rehearsal;
}
