import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Acted, Colleagues } from '../membership/peer-clients.ts';
import { type GatherDeps, type Gathered, gather } from './collect-reports.ts';
import { type Act, targets } from './modes.ts';
import { votes } from './sets.ts';

export interface ActDeps extends GatherDeps {
  readonly colleagues: Pick<Colleagues, 'report' | 'act'>;
  /** Acts on a register here. */
  actHere(registerId: string, act: Act): Promise<Acted>;
  /** The members of a register; undefined when there is no such register. */
  findSet(registerId: string): Promise<RegisterSet | undefined>;
}

/** The validator set of a register at its current height. */
export interface RegisterSet {
  readonly members: readonly string[];
  readonly quorum: number;
}

export interface ActRequest {
  readonly registerId: string;
  readonly act: Act;
  /** One member; undefined for all. */
  readonly validatorId: string | undefined;
  readonly force: boolean;
  /** Access token of the system administrator who made the request. */
  readonly subjectToken: string;
}

/** The result of the mode change at one member. */
interface Outcome {
  readonly validatorId: string;
  readonly acted: Acted | undefined;
  readonly refusal: AppError | undefined;
}

/**
 * Starts, stops, pauses or resumes a register at all its members, or at one of them. The answer names the members that
 * cannot be reached. Throws AppError not_found REGISTER_NOT_FOUND or VALIDATOR_NOT_FOUND, conflict QUORUM_WOULD_BREAK,
 * unavailable VALIDATOR_UNAVAILABLE when no member can be reached, and the first refusal when every member refused.
 */
export async function actOnSet(deps: ActDeps, request: ActRequest) {
  const { registerId, act, validatorId } = request;
  const set = await deps.findSet(registerId);
  if (set === undefined)
    throw new AppError('not_found', 'REGISTER_NOT_FOUND', 'The register is not validated here');
  if (validatorId !== undefined && !set.members.includes(validatorId))
    throw new AppError(
      'not_found',
      'VALIDATOR_NOT_FOUND',
      `${validatorId} is not a validator of the register`,
    );
  const chosen = validatorId === undefined ? set.members : [validatorId];
  if (act === 'stop' && !request.force) assertQuorumStays(await gather(deps, registerId), set, request);
  const outcomes = await Promise.all(chosen.map((id) => actAt(deps, id, request)));
  const acted = outcomes.flatMap((outcome) => outcome.acted ?? []);
  const [refused] = outcomes.flatMap(({ refusal }) => refusal ?? []);
  if (acted.length === 0) throw refused ?? nobody();
  const status = targets[act];
  return {
    registerId,
    status,
    message: describe(status, outcomes),
    members: outcomes.map((outcome) => ({
      validatorId: outcome.validatorId,
      reachable: outcome.acted !== undefined || outcome.refusal !== undefined,
      ...(outcome.acted && { status: outcome.acted.status }),
      ...(outcome.refusal && { code: outcome.refusal.code }),
    })),
  };
}

/** The voting members that are not stopped must still form a quorum. A set of one is stopped by its only member. */
function assertQuorumStays(gathered: readonly Gathered[], set: RegisterSet, request: ActRequest): void {
  const { members, quorum } = set;
  if (members.length === 1) return;
  const left = gathered.filter(({ validatorId, report }) => {
    const stays = request.validatorId !== undefined && validatorId !== request.validatorId;
    const known = report?.registers.find(({ registerId }) => registerId === request.registerId);
    return stays && members.includes(validatorId) && known !== undefined && votes(known);
  });
  if (left.length >= quorum) return;
  throw new AppError(
    'conflict',
    'QUORUM_WOULD_BREAK',
    'Without these members no quorum remains; repeat the request with force=true to stop them all the same',
  );
}

async function actAt(deps: ActDeps, validatorId: string, request: ActRequest): Promise<Outcome> {
  const { registerId, act, subjectToken } = request;
  try {
    const acted =
      validatorId === deps.validatorId
        ? await deps.actHere(registerId, act)
        : await deps.colleagues.act(validatorId, { registerId, act, subjectToken });
    return { validatorId, acted, refusal: undefined };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const isAway = error.kind === 'unavailable' || error.kind === 'timeout';
    return { validatorId, acted: undefined, refusal: isAway ? undefined : error };
  }
}

function describe(status: string, outcomes: readonly Outcome[]): string {
  const acted = outcomes.filter((outcome) => outcome.acted !== undefined);
  const already = acted.every((outcome) => outcome.acted?.changed === false) ? ' already' : '';
  if (acted.length === outcomes.length) return `Validation is ${status}${already}`;
  const others = outcomes.filter((outcome) => outcome.acted === undefined);
  const named = others.map(
    (outcome) => `${outcome.validatorId} ${outcome.refusal ? 'refused' : 'did not answer'}`,
  );
  return `Validation is ${status}${already} at ${acted.length} of ${outcomes.length} validators; ${named.join(', ')}`;
}

function nobody(): AppError {
  return new AppError('unavailable', 'VALIDATOR_UNAVAILABLE', 'No validator of the register can be reached', {
    retryAfterSeconds: 1,
  });
}
