import { isAppError } from '#core/errors/errors.ts';
import type { Reader } from '#kit/db/db.ts';
import { isOutage, type ValidatorAddress } from '../clients.ts';
import type { RegisterSchema } from '../database/schema.ts';
import { refusal } from '../errors.ts';
import { announcedMembers } from './store.ts';

/** Members of a register as they can be reached, the one heard of last first. */
export type FindMembers = (registerNo: number) => Promise<readonly ValidatorAddress[]>;

const keptMs = 1_000;
const keptRegisters = 10_000;

/** Members by register, read again after a second: submissions come by the thousand, announcements do not. */
export function createFindMembers(db: Reader<RegisterSchema>): FindMembers {
  const known = new Map<
    number,
    { readonly until: number; readonly members: Promise<readonly ValidatorAddress[]> }
  >();
  return (registerNo) => {
    const cached = known.get(registerNo);
    if (cached !== undefined && cached.until > performance.now()) return cached.members;
    if (known.size >= keptRegisters) known.clear();
    const members = announcedMembers(db, registerNo);
    known.set(registerNo, { until: performance.now() + keptMs, members });
    members.catch(() => known.delete(registerNo));
    return members;
  };
}

/**
 * Asks the members one after the other until one answers; any of them serves any register (D21).
 * @throws AppError unavailable VALIDATOR_UNAVAILABLE when none can be reached
 */
export async function askOne<T>(
  members: readonly ValidatorAddress[],
  ask: (at: ValidatorAddress) => Promise<T>,
): Promise<T> {
  let cause: unknown;
  for (const member of members) {
    try {
      return await ask(member);
    } catch (error) {
      if (!isAppError(error) || !isOutage(error)) throw error;
      cause = error;
    }
  }
  throw refusal('VALIDATOR_UNAVAILABLE', { cause, retryAfterSeconds: 1 });
}

/**
 * What all members that can be reached say. A submission is hinted to every member, so a majority that does not know
 * a transaction is answer enough; fewer are not.
 * @throws AppError unavailable VALIDATOR_UNAVAILABLE when none can be reached
 */
export async function askAll<T>(
  members: readonly ValidatorAddress[],
  ask: (at: ValidatorAddress) => Promise<T>,
): Promise<{ readonly answers: T[]; readonly majority: boolean }> {
  const results = await Promise.allSettled(members.map(ask));
  const answers = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  if (answers.length === 0) {
    const failed = results.find((result) => result.status === 'rejected');
    throw refusal('VALIDATOR_UNAVAILABLE', { cause: failed?.reason, retryAfterSeconds: 1 });
  }
  return { answers, majority: answers.length * 2 > results.length };
}
