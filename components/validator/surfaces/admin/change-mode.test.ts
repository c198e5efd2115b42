import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { type ModeCommand, nextMode } from '../../chain/sealing/modes.ts';
import { four, registerId, registerReport, validatorReport } from '../reports/reports.fixture.ts';
import { changeModeOfSet, type ModeChangeDeps } from './change-mode.ts';

type Status = 'Running' | 'Paused' | 'Stopped' | 'Halted';

/** Four validators in memory; those in `away` do not answer. */
function set(
  over: { size?: number; away?: readonly string[]; statuses?: Partial<Record<string, Status>> } = {},
) {
  const members = four.slice(0, over.size ?? 4);
  const quorum = Math.floor((2 * members.length) / 3) + 1;
  const statuses = new Map<string, Status>(members.map((id) => [id, over.statuses?.[id] ?? 'Running']));
  const here = (validatorId: string) => {
    if (over.away?.includes(validatorId)) throw new AppError('unavailable', 'UNAVAILABLE', 'unreachable');
    return statuses.get(validatorId) ?? 'Running';
  };
  const changeModeAt = async (validatorId: string, act: ModeCommand) => {
    const before = here(validatorId);
    const status = nextMode(before, act);
    statuses.set(validatorId, status);
    return { status, changed: status !== before };
  };
  const report = (validatorId: string) =>
    validatorReport(validatorId, [registerReport({ status: here(validatorId), members, quorum })]);
  const deps: ModeChangeDeps = {
    validatorId: 'validator-0',
    report: () => report('validator-0'),
    directory: { all: async () => [] },
    peerClients: {
      report: async (validatorId) => report(validatorId),
      act: (id, { act }) => changeModeAt(id, act),
    },
    changeModeHere: (_registerId, act) => changeModeAt('validator-0', act),
    findSet: async (id) => (id === registerId ? { members, quorum } : undefined),
  };
  const act = (
    name: ModeCommand,
    query: { validatorId?: string; force?: boolean; registerId?: string } = {},
  ) =>
    changeModeOfSet(deps, {
      registerId: query.registerId ?? registerId,
      act: name,
      validatorId: query.validatorId,
      force: query.force ?? false,
      subjectToken: 'token',
    });
  return { act, statuses: () => [...statuses.values()] };
}

describe('start, stop, pause and resume of a set', () => {
  it('apply to every member', async () => {
    const { act, statuses } = set();
    expect(await act('pause')).toMatchObject({ status: 'Paused', message: 'Validation is Paused' });
    expect(statuses()).toEqual(['Paused', 'Paused', 'Paused', 'Paused']);
    expect(await act('pause')).toMatchObject({ message: 'Validation is Paused already' });
    expect((await act('resume')).members).toHaveLength(4);
    expect(statuses()).toEqual(['Running', 'Running', 'Running', 'Running']);
  });

  it('name the members that did not answer', async () => {
    const { act } = set({ away: ['validator-2'] });
    const answer = await act('pause');
    expect(answer.message).toBe('Validation is Paused at 3 of 4 validators; validator-2 did not answer');
    expect(answer.members[2]).toEqual({ validatorId: 'validator-2', reachable: false });
    expect(answer.members[1]).toEqual({ validatorId: 'validator-1', reachable: true, status: 'Paused' });
  });

  it('name the members that refused, and fail as a whole when all refuse', async () => {
    const { act } = set({ statuses: { 'validator-3': 'Stopped' } });
    const answer = await act('pause');
    expect(answer.message).toContain('at 3 of 4 validators; validator-3 refused');
    expect(answer.members[3]).toMatchObject({ reachable: true, code: 'VALIDATION_STOPPED' });
    const stopped = set({ statuses: Object.fromEntries(four.map((id) => [id, 'Stopped'])) });
    await expect(stopped.act('resume')).rejects.toMatchObject({ code: 'VALIDATION_STOPPED' });
  });

  it('stop one member while the others form a quorum', async () => {
    const { act, statuses } = set();
    await act('stop', { validatorId: 'validator-1' });
    expect(statuses()).toEqual(['Running', 'Stopped', 'Running', 'Running']);
    await expect(act('stop', { validatorId: 'validator-2' })).rejects.toMatchObject({
      kind: 'conflict',
      code: 'QUORUM_WOULD_BREAK',
    });
    await act('stop', { validatorId: 'validator-2', force: true });
    expect(statuses()).toEqual(['Running', 'Stopped', 'Stopped', 'Running']);
  });

  it('do not count unreachable members among the remaining quorum', async () => {
    const { act } = set({ away: ['validator-3'] });
    await expect(act('stop', { validatorId: 'validator-1' })).rejects.toMatchObject({
      code: 'QUORUM_WOULD_BREAK',
    });
  });

  it('stop a set of several members only by force, and a set of one at once', async () => {
    const several = set();
    await expect(several.act('stop')).rejects.toMatchObject({ code: 'QUORUM_WOULD_BREAK' });
    expect(await several.act('stop', { force: true })).toMatchObject({ status: 'Stopped' });
    expect(await set({ size: 1 }).act('stop')).toMatchObject({ message: 'Validation is Stopped' });
  });

  it('refuse unknown registers and validators', async () => {
    const { act } = set();
    await expect(act('pause', { registerId: 'ff'.repeat(16) })).rejects.toMatchObject({ kind: 'not_found' });
    await expect(act('pause', { validatorId: 'validator-9' })).rejects.toMatchObject({
      code: 'VALIDATOR_NOT_FOUND',
    });
  });

  it('report when no member can be reached', async () => {
    const { act } = set({ away: four });
    await expect(act('pause')).rejects.toMatchObject({ kind: 'unavailable', code: 'VALIDATOR_UNAVAILABLE' });
  });
});
