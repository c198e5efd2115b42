import type { Verifier } from '#core/crypto/verify.ts';
import { findMemberAddress } from '#core/ledger/did.ts';
import { mayDelete, type RosterEntry } from '#core/ledger/governance/rules.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { Wallets } from '../../clients/wallets.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { findRosterSigner } from '../../governance/control/roster-authorisation.ts';
import { loadRules } from '../../governance/rules/load.ts';
import type { FindMembers } from '../directory/ask.ts';
import type { Subject } from '../state/access.ts';
import type { Deletion, Register } from '../state/store.ts';
import type { StopNotifications } from './stop-notifications.ts';
import { markDeleted } from './store.ts';

export interface DeleteDeps {
  readonly database: Database<RegisterSchema>;
  readonly wallets: Wallets;
  readonly stopNotifications: Pick<StopNotifications, 'notify'>;
  readonly findMembers: FindMembers;
  readonly verifier: Verifier;
  readonly clock: Clock;
  /** Called when the register is no longer in any list. */
  readonly onDeleted: () => void;
}

/** Refuses deletion of a System register, and by callers without an Owner or Admin wallet of the roster. */
export async function assertMayDelete(deps: DeleteDeps, subject: Subject, register: Register): Promise<void> {
  if (register.purpose === 'System') throw refusal('SYSTEM_REGISTER_PROTECTED');
  const rules = await loadRules(deps, register);
  const may = (entry: RosterEntry) => mayDelete(rules, findMemberAddress(entry.subject) ?? '');
  if ((await findRosterSigner(deps.wallets, subject, rules, may)) === undefined)
    throw refusal('DELETE_NOT_ATTESTED');
}

/** Marks a register deleted and sends stop notifications to its validators; idempotent. */
export async function deleteAndNotify(
  deps: DeleteDeps,
  { registerNo, registerId }: Register,
  how: { readonly policy: Deletion['policy']; readonly purgeAfter?: Date | undefined },
): Promise<void> {
  const members = await deps.findMembers(registerNo);
  const at = new Date(deps.clock.nowMs());
  await deps.database.transact((tx) => markDeleted(tx, { registerNo, registerId, at, ...how }));
  deps.onDeleted();
  deps.stopNotifications.notify(registerId, members);
}

/**
 * Deletes a register on this installation. The caller needs an Owner or Admin wallet of the current roster; System
 * registers cannot be deleted. The data is kept for a week; replicas on other installations stay.
 */
export async function deleteRegister(deps: DeleteDeps, subject: Subject, register: Register): Promise<void> {
  await assertMayDelete(deps, subject, register);
  await deleteAndNotify(deps, register, { policy: 'Tombstone' });
}
