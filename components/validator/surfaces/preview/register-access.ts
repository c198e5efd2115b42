import { type AppError, isAppError } from '#core/errors/errors.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import { isMember } from '../../chain/state/state.ts';
import { failure } from '../../errors.ts';
import { registerNotFound } from '../reports/register-path.ts';
import type { RegisterSet } from '../reports/sets.ts';
import type { Visibility } from '../reports/visibility.ts';

/** Access to a register: at this validator, or at one of the register's members. */
export interface RegisterAccess extends Visibility {
  readonly validatorId: string;
  /** The members of a register; undefined when there is no such register. */
  findSet(registerId: string): Promise<RegisterSet | undefined>;
  getRegister(registerId: string): RegisterChain | undefined;
}

/** The register, if this validator is one of its members. */
export function findLocal(deps: Pick<RegisterAccess, 'validatorId' | 'getRegister'>, registerId: string) {
  const register = deps.getRegister(registerId);
  return register !== undefined && isMember(register, deps.validatorId) ? register : undefined;
}

/** Refusals of a reachable member after which another member is tried. */
const refusals: readonly string[] = ['REGISTER_NOT_READY', 'QUORUM_UNAVAILABLE'];

/**
 * Runs the request here when this validator is a member of the register; otherwise at its members in turn until one answers.
 * @throws AppError not_found REGISTER_NOT_FOUND, the first refusal of a reachable member, unavailable
 * VALIDATOR_UNAVAILABLE when no member is reachable
 */
export async function callMember<T>(
  deps: RegisterAccess,
  registerId: string,
  ask: { local(register: RegisterChain): T | Promise<T>; remote(validatorId: string): Promise<T> },
): Promise<T> {
  const register = findLocal(deps, registerId);
  if (register !== undefined) return ask.local(register);
  const set = await deps.findSet(registerId);
  if (set === undefined) throw registerNotFound();
  let refusal: AppError | undefined;
  for (const validatorId of set.members) {
    if (validatorId === deps.validatorId) continue;
    try {
      return await ask.remote(validatorId);
    } catch (error) {
      if (!isAppError(error) || !isOutage(error)) throw error;
      if (refusals.includes(error.code)) refusal ??= error;
    }
  }
  const message = 'No validator of the register can be reached';
  throw refusal ?? failure('VALIDATOR_UNAVAILABLE', { message, retryAfterSeconds: 1 });
}

function isOutage({ kind, code }: AppError): boolean {
  return kind === 'timeout' ? code !== 'CONSENSUS_TIMEOUT' : kind === 'unavailable' || kind === 'bad_gateway';
}
