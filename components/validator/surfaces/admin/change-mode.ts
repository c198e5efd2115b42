import { type AppError, isAppError } from '#core/errors/errors.ts';
import { type ModeCommand, type ModeOutcome, targetModes } from '../../chain/sealing/modes.ts';
import { failure } from '../../errors.ts';
import type { ReportClient } from '../reports/clients.ts';
import { type CollectedReport, type CollectReportsDeps, collectReports } from '../reports/collect-reports.ts';
import type { RegisterSet } from '../reports/sets.ts';
import { isVoting } from '../reports/sets.ts';
import type { ModeClient } from './clients.ts';

export interface ModeChangeDeps extends CollectReportsDeps {
  readonly peerClients: ReportClient & ModeClient;
  /** Acts on a register here. */
  changeModeHere(registerId: string, act: ModeCommand): Promise<ModeOutcome>;
  /** The members of a register; undefined when there is no such register. */
  findSet(registerId: string): Promise<RegisterSet | undefined>;
}

interface ModeChangeRequest {
  readonly registerId: string;
  readonly act: ModeCommand;
  /** One member; undefined for all. */
  readonly validatorId: string | undefined;
  readonly force: boolean;
  /** Access token of the system administrator who made the request. */
  readonly subjectToken: string;
}

/** The result of the mode change at one member. */
interface MemberOutcome {
  readonly validatorId: string;
  readonly acted: ModeOutcome | undefined;
  readonly refusal: AppError | undefined;
}

/**
 * Starts, stops, pauses or resumes a register at all its members, or at one of them. The answer names the members that
 * cannot be reached. Throws AppError not_found REGISTER_NOT_FOUND or VALIDATOR_NOT_FOUND, conflict QUORUM_WOULD_BREAK,
 * unavailable VALIDATOR_UNAVAILABLE when no member can be reached, and the first refusal when every member refused.
 */
export async function changeModeOfSet(deps: ModeChangeDeps, request: ModeChangeRequest) {
  const { registerId, act, validatorId } = request;
  const set = await deps.findSet(registerId);
  if (set === undefined) throw failure('REGISTER_NOT_FOUND');
  if (validatorId !== undefined && !set.members.includes(validatorId))
    throw failure('VALIDATOR_NOT_FOUND', { message: `${validatorId} is not a validator of the register` });
  const chosen = validatorId === undefined ? set.members : [validatorId];
  if (act === 'stop' && !request.force)
    assertQuorumStays(await collectReports(deps, registerId), set, request);
  const outcomes = await Promise.all(chosen.map((id) => changeModeAt(deps, id, request)));
  const acted = outcomes.flatMap((outcome) => outcome.acted ?? []);
  const [refused] = outcomes.flatMap(({ refusal }) => refusal ?? []);
  if (acted.length === 0) throw refused ?? noneReachable();
  const status = targetModes[act];
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
function assertQuorumStays(
  collected: readonly CollectedReport[],
  set: RegisterSet,
  request: ModeChangeRequest,
): void {
  const { members, quorum } = set;
  if (members.length === 1) return;
  const left = collected.filter(({ validatorId, report }) => {
    const stays = request.validatorId !== undefined && validatorId !== request.validatorId;
    const known = report?.registers.find(({ registerId }) => registerId === request.registerId);
    return stays && members.includes(validatorId) && known !== undefined && isVoting(known);
  });
  if (left.length >= quorum) return;
  throw failure('QUORUM_WOULD_BREAK');
}

async function changeModeAt(
  deps: ModeChangeDeps,
  validatorId: string,
  request: ModeChangeRequest,
): Promise<MemberOutcome> {
  const { registerId, act, subjectToken } = request;
  try {
    const acted =
      validatorId === deps.validatorId
        ? await deps.changeModeHere(registerId, act)
        : await deps.peerClients.act(validatorId, { registerId, act, subjectToken });
    return { validatorId, acted, refusal: undefined };
  } catch (error) {
    if (!isAppError(error)) throw error;
    const isUnreachable = error.kind === 'unavailable' || error.kind === 'timeout';
    return { validatorId, acted: undefined, refusal: isUnreachable ? undefined : error };
  }
}

function describe(status: string, outcomes: readonly MemberOutcome[]): string {
  const acted = outcomes.filter((outcome) => outcome.acted !== undefined);
  const already = acted.every((outcome) => outcome.acted?.changed === false) ? ' already' : '';
  if (acted.length === outcomes.length) return `Validation is ${status}${already}`;
  const others = outcomes.filter((outcome) => outcome.acted === undefined);
  const named = others.map(
    (outcome) => `${outcome.validatorId} ${outcome.refusal ? 'refused' : 'did not answer'}`,
  );
  return `Validation is ${status}${already} at ${acted.length} of ${outcomes.length} validators; ${named.join(', ')}`;
}

function noneReachable(): AppError {
  return failure('VALIDATOR_UNAVAILABLE', { retryAfterSeconds: 1 });
}
