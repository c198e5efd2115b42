import { isAppError } from '#core/errors/errors.ts';
import { refusal } from '../../errors.ts';
import { assertMayDelete, type DeleteDeps, deleteAndNotify } from '../lifecycle/delete.ts';
import type { Subject } from '../state/access.ts';
import { findRegisterEver, type Register } from '../state/store.ts';
import { type Found, getFound } from './status.ts';
import { hasBegun, hastenPurge, lockManaged, release } from './store.ts';

export const DELETION_POLICIES = ['Retain', 'Tombstone', 'Purge'] as const;
type DeletionPolicy = (typeof DELETION_POLICIES)[number];

/** Grace period in which a purge can still be reverted. */
const purgeGraceMs = 24 * 3_600_000;

/** The resource or register of a key; undefined for one that never existed or was released. */
async function find(deps: DeleteDeps, key: string): Promise<Found | undefined> {
  try {
    return await getFound(deps, key);
  } catch (error) {
    if (isAppError(error) && error.code === 'REGISTER_NOT_FOUND') return undefined;
    throw error;
  }
}

/** Deletes the draft of a register, unless the register has just begun. */
async function dropDraft(deps: DeleteDeps, uid: string): Promise<boolean> {
  return deps.database.transact(async (tx) => {
    const { registerId } = await lockManaged(tx, uid);
    if (await hasBegun(tx, registerId)) return false;
    await release(tx, uid, new Date(deps.clock.nowMs()));
    return true;
  });
}

async function remove(
  deps: DeleteDeps,
  register: Register,
  policy: Exclude<DeletionPolicy, 'Retain'>,
): Promise<void> {
  const purgeAfter = policy === 'Purge' ? new Date(deps.clock.nowMs() + purgeGraceMs) : undefined;
  await deleteAndNotify(deps, register, { policy, purgeAfter });
}

/**
 * Releases the register of a custom resource, and deletes it if the policy says so. Idempotent. Retain keeps the
 * register; Tombstone deletes it as an Owner or Admin does; Purge also drops its data a day later.
 *
 * @returns the facts to report; undefined for an unknown key
 * @throws AppError forbidden SYSTEM_REGISTER_PROTECTED, DELETE_NOT_ATTESTED
 */
export async function removeManaged(
  deps: DeleteDeps,
  subject: Subject,
  key: string,
  policy: DeletionPolicy,
): Promise<Found | undefined> {
  const found = await find(deps, key);
  if (found === undefined) return undefined;
  const { managed, known } = found;
  if (policy === 'Retain') {
    if (managed !== undefined)
      await deps.database.transact((tx) => release(tx, managed.uid, new Date(deps.clock.nowMs())));
    return found;
  }
  if (known === undefined && managed !== undefined) {
    if (await dropDraft(deps, managed.uid)) return { managed, known };
    return removeManaged(deps, subject, key, policy);
  }
  if (known === undefined) throw refusal('REGISTER_NOT_FOUND');
  const { register, deletion } = known;
  if (deletion === undefined) {
    await assertMayDelete(deps, subject, register);
    await remove(deps, register, policy);
  } else if (policy === 'Purge') {
    const purgeAfter = new Date(deps.clock.nowMs() + purgeGraceMs);
    await deps.database.transact((tx) => hastenPurge(tx, register.registerNo, purgeAfter));
  }
  return { managed, known: await findRegisterEver(deps.database.read, register.registerId) };
}
