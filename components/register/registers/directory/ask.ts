import { type AppError, isAppError } from '#core/errors/errors.ts';
import type { Reader } from '#kit/db/db.ts';
import { isOutage, type ValidatorAddress } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import type { Outages } from './outages.ts';
import { memberAddresses } from './store.ts';

/** Every member of a register, in the order in which to call them. */
export type FindMembers = (registerNo: number) => Promise<readonly ValidatorAddress[]>;

const keptMs = 1_000;
const keptRegisters = 10_000;

/** Caches members by register for one second: submissions are frequent, announcements are not. */
export function createFindMembers(db: Reader<RegisterSchema>, outages: Pick<Outages, 'order'>): FindMembers {
  const known = new Map<
    number,
    { readonly until: number; readonly members: Promise<readonly ValidatorAddress[]> }
  >();
  const read = (registerNo: number): Promise<readonly ValidatorAddress[]> => {
    const cached = known.get(registerNo);
    if (cached !== undefined && cached.until > performance.now()) return cached.members;
    if (known.size >= keptRegisters) known.clear();
    const members = memberAddresses(db, registerNo);
    known.set(registerNo, { until: performance.now() + keptMs, members });
    members.catch(() => known.delete(registerNo));
    return members;
  };
  return async (registerNo) => outages.order(await read(registerNo));
}

function unavailable(cause: unknown): Error {
  return refusal('VALIDATOR_UNAVAILABLE', { cause, retryAfterSeconds: 1 });
}

/** A member without an address counts as unreachable. */
function reach<T>(member: ValidatorAddress, ask: (at: ValidatorAddress) => Promise<T>): Promise<T> {
  return member.endpoint === '' ? Promise.reject(unavailable(undefined)) : ask(member);
}

/** Whether the failure concerns this member alone, so that another one may answer. */
function maySucceedElsewhere(error: AppError): boolean {
  return isOutage(error) || error.kind === 'internal';
}

/**
 * Calls the members in turn until one answers; any member can serve any request for its register. An answer that is not
 * `final` is returned only when no member has a better one.
 * @throws AppError unavailable VALIDATOR_UNAVAILABLE when none can be reached
 */
export async function askOne<T>(
  members: readonly ValidatorAddress[],
  ask: (at: ValidatorAddress) => Promise<T>,
  final: (answer: T) => boolean = () => true,
): Promise<T> {
  let cause: unknown;
  const second: T[] = [];
  for (const member of members) {
    try {
      const answer = await reach(member, ask);
      if (final(answer)) return answer;
      second.push(answer);
    } catch (error) {
      if (!isAppError(error) || !maySucceedElsewhere(error)) throw error;
      cause = error;
    }
  }
  const [answer] = second;
  if (answer !== undefined) return answer;
  throw unavailable(cause);
}

/** The answers of the members that could be reached. */
interface Answers<T> {
  readonly answers: readonly T[];
  readonly reached: readonly ValidatorAddress[];
  /** More than half of all members answered. */
  readonly majority: boolean;
}

interface AskAllOptions<T> {
  /** Whether an answer suffices, so that the others are not awaited. */
  readonly enough?: (answer: T) => boolean;
  /** Number of answers after which the others get only a grace period; a majority when absent. */
  readonly need?: number;
}

/**
 * Grace period for slow members once enough others have answered: a dead member must not delay every answer, a busy one
 * may be the only one with the answer.
 */
const graceMs = 1_000;

/**
 * Calls all members and returns the answers of those that can be reached. A submission is announced to every member, so
 * "unknown" from a majority is conclusive; fewer are not.
 * @throws AppError unavailable VALIDATOR_UNAVAILABLE when none can be reached
 */
export async function askAll<T>(
  members: readonly ValidatorAddress[],
  ask: (at: ValidatorAddress) => Promise<T>,
  options: AskAllOptions<T> = {},
): Promise<Answers<T>> {
  const { enough = () => false, need = Math.floor(members.length / 2) + 1 } = options;
  const done = Promise.withResolvers<void>();
  const answered: { readonly member: ValidatorAddress; readonly answer: T }[] = [];
  let failure: unknown;
  let grace: NodeJS.Timeout | undefined;
  const onAnswer = (member: ValidatorAddress, answer: T): void => {
    answered.push({ member, answer });
    if (enough(answer)) done.resolve();
    else if (answered.length === need) grace = setTimeout(done.resolve, graceMs);
  };
  const calls = members.map(async (member) => {
    try {
      onAnswer(member, await reach(member, ask));
    } catch (error) {
      failure ??= error;
    }
  });
  await Promise.race([done.promise, Promise.all(calls)]);
  clearTimeout(grace);
  if (answered.length === 0) throw unavailable(failure);
  return {
    answers: answered.map(({ answer }) => answer),
    reached: answered.map(({ member }) => member),
    majority: answered.length * 2 > members.length,
  };
}
