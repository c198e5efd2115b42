import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { GetStatusResponseSchema } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { zeroCounts } from '../../chain/consensus/tally.ts';
import { collectReports } from '../reports/collect-reports.ts';
import { collected, four, registerId, registerReport, validatorReport } from '../reports/reports.fixture.ts';
import { reportOf, wireReport } from '../reports/wire.ts';
import { presentConsensus } from './consensus.ts';
import { presentStatus } from './status.ts';

const asked = { self: 'validator-0', nowMs: 61_000 };
const running = registerReport();
const all = (report = running) => collected(Object.fromEntries(four.map((id) => [id, report])));
const statusOf = (reports: Parameters<typeof collected>[0]) =>
  presentStatus(collected(reports), asked).registers[0];

describe('validation status of a set', () => {
  it('has one row per register with every member', () => {
    const { registers, validators } = presentStatus(all(), asked);
    expect(registers).toHaveLength(1);
    expect(registers[0]).toMatchObject({
      registerId,
      status: 'Running',
      lastDocketNumber: 4,
      uptime: '0.00:01:00',
      role: 'voter',
      proposer: 'validator-1',
      validatorSetSize: 4,
      quorum: 3,
      operational: 4,
      quorumAvailable: true,
      lastCommitAt: '1970-01-01T00:00:09.000Z',
    });
    expect(
      registers[0]?.members.map((member) => [member.validatorId, 'role' in member && member.role]),
    ).toEqual([
      ['validator-0', 'voter'],
      ['validator-1', 'proposer'],
      ['validator-2', 'voter'],
      ['validator-3', 'voter'],
    ]);
    expect(validators.every(({ reachable }) => reachable)).toBe(true);
  });

  it('names unreachable members and stays Running without one of four', () => {
    const three = { 'validator-0': running, 'validator-1': running, 'validator-3': running };
    const { registers, validators } = presentStatus(collected(three), asked);
    expect(registers[0]).toMatchObject({ status: 'Running', operational: 3, quorumAvailable: true });
    expect(registers[0]?.members[2]).toEqual({
      validatorId: 'validator-2',
      reachable: false,
      conditions: [],
    });
    expect(validators[2]).toEqual({
      validatorId: 'validator-2',
      reachable: false,
      version: null,
      features: [],
      uptime: null,
      lastHeardAt: null,
      conditions: [],
    });
  });

  it('does not count a member that paused itself, and shows its reason and its volume gap', () => {
    const volumeGap = { held: 2, chain: 5, atMs: 3_000 };
    const full = registerReport({ status: 'Paused', reason: 'disk full', volumeGap });
    const reports = collected({ 'validator-0': running, 'validator-1': running, 'validator-2': full });
    const message = 'There is no room';
    const conditions = [{ type: 'Paused', reason: 'disk full', message, sinceMs: 4_000 }];
    const { registers, validators } = presentStatus(
      reports.map((one) =>
        one.validatorId === 'validator-2' && one.report !== undefined
          ? { ...one, report: { ...one.report, conditions } }
          : one,
      ),
      asked,
    );
    expect(registers[0]).toMatchObject({ status: 'WaitingForValidators', operational: 2 });
    expect(registers[0]?.members[2]).toMatchObject({
      status: 'Paused',
      reason: 'disk full',
      role: 'observer',
      volumeBehind: { held: 2, chain: 5, detectedAt: '1970-01-01T00:00:03.000Z' },
    });
    const since = '1970-01-01T00:00:04.000Z';
    expect(validators[2]?.conditions).toEqual([{ type: 'Paused', reason: 'disk full', message, since }]);
    const all = { 'validator-0': full, 'validator-1': full, 'validator-2': full, 'validator-3': full };
    expect(statusOf(all)).toMatchObject({ status: 'Paused', operational: 0, quorumAvailable: false });
  });

  it('reports WaitingForValidators with two of four', () => {
    const two = statusOf({ 'validator-0': running, 'validator-3': running });
    expect(two).toMatchObject({ status: 'WaitingForValidators', operational: 2, quorumAvailable: false });
  });

  it('does not count stopped members, and distinguishes paused, stopped and halted ones', () => {
    const [paused, stopped] = [registerReport({ status: 'Paused' }), registerReport({ status: 'Stopped' })];
    const halted = registerReport({ status: 'Halted', reason: 'docket 5 was refused' });
    const of = (...reports: (typeof running)[]) =>
      statusOf(Object.fromEntries(reports.map((report, index) => [`validator-${index}`, report])));
    expect(of(running, running, paused, paused)).toMatchObject({ status: 'Running', operational: 4 });
    expect(of(running, running, stopped, stopped)).toMatchObject({
      status: 'WaitingForValidators',
      operational: 2,
    });
    expect(of(paused, paused, paused, paused)?.status).toBe('Paused');
    const waiting = registerReport({ status: 'WaitingForValidators' });
    expect(of(waiting, waiting, waiting)).toMatchObject({ status: 'WaitingForValidators', operational: 3 });
    expect(of(waiting, paused, running, waiting)?.status).toBe('Running');
    expect(of(stopped, stopped, stopped, stopped)).toMatchObject({ status: 'Stopped', role: 'observer' });
    const mixed = of(running, running, running, halted);
    expect(mixed?.status).toBe('Halted');
    expect(mixed?.members[3]).toMatchObject({ status: 'Halted', reason: 'docket 5 was refused' });
  });

  it('shows the highest height and round, and the fullest pool', () => {
    const status = statusOf({
      'validator-0': registerReport({ height: 5, round: 3, memPoolSize: 2 }),
      'validator-1': registerReport({ height: 6, round: 1, storedHeight: 6, proposer: 'validator-3' }),
      'validator-2': registerReport({ height: 6, round: 0, memPoolSize: 7 }),
    });
    expect(status).toMatchObject({
      height: 6,
      round: 1,
      proposer: 'validator-3',
      lastDocketNumber: 5,
      memPoolSize: 7,
    });
  });

  it('ignores reports about a register from a validator that is no member of it', () => {
    const others = registerReport({ members: ['validator-7', 'validator-8'] });
    expect(presentStatus(collected({ 'validator-2': others }), asked).registers).toEqual([]);
    const own = statusOf({ 'validator-0': running, 'validator-2': others });
    expect(own?.validatorSetSize).toBe(4);
  });

  it('shows when an unreachable validator was last heard', () => {
    const report = {
      ...validatorReport('validator-1', []),
      heard: [{ validatorId: 'validator-2', heardAtMs: 50_000 }],
    };
    const reports = [
      { validatorId: 'validator-1', report },
      { validatorId: 'validator-2', report: undefined },
    ];
    const { validators } = presentStatus(reports, asked);
    expect(validators.map(({ lastHeardAt }) => lastHeardAt)).toEqual([
      '1970-01-01T00:01:01.000Z',
      '1970-01-01T00:00:50.000Z',
    ]);
  });
});

describe('consensus metrics of a set', () => {
  const counted = (over: object) => registerReport({ counts: { ...zeroCounts(), ...over } });

  it('take rounds from the member that counted most and sum what each member did', () => {
    const metrics = presentConsensus(
      collected({
        'validator-0': counted({
          rounds: 10,
          roundsFailed: 2,
          decided: 8,
          decidingMs: 80,
          proposalsMade: 2,
          votesCast: 20,
        }),
        'validator-1': counted({
          rounds: 4,
          decided: 4,
          decidingMs: 9,
          proposalsMade: 3,
          votesCast: 8,
          votesNil: 1,
        }),
      }),
      'validator-0',
      () => true,
    );
    const numbers = {
      rounds: 10,
      roundsFailed: 2,
      averageRounds: 1.25,
      proposalsMade: 5,
      votesCast: 28,
      votesNil: 1,
      consensusSuccessRate: 0.8,
      averageConsensusTime: 10,
    };
    expect(metrics).toMatchObject(numbers);
    expect(metrics.unreachable).toEqual(['validator-2', 'validator-3']);
    expect(metrics.byRegister).toMatchObject([
      {
        registerId,
        height: 5,
        round: 0,
        proposer: 'validator-1',
        quorum: 3,
        operational: 2,
        quorumAvailable: false,
        unreachable: ['validator-2', 'validator-3'],
        ...numbers,
      },
    ]);
  });

  it('omit registers that the caller may not see, also in the totals', () => {
    const metrics = presentConsensus(all(counted({ rounds: 3, decided: 3 })), 'validator-0', () => false);
    expect(metrics).toMatchObject({ rounds: 0, consensusSuccessRate: 1, averageRounds: 0, byRegister: [] });
  });
});

describe('collecting reports', () => {
  const own = validatorReport('validator-0', [running]);
  const directory = (...ids: string[]) => ({
    all: async () =>
      ids.map((validatorId) => ({ validatorId, endpoint: 'h:1', version: '1', announcedAtMs: 0 })),
  });

  it('asks announced validators and members, and answers for itself', async () => {
    const calls: string[] = [];
    const found = await collectReports(
      {
        validatorId: 'validator-0',
        report: () => own,
        directory: directory('validator-0', 'validator-1', 'validator-9'),
        peerClients: {
          report: async (validatorId) => {
            calls.push(validatorId);
            if (validatorId === 'validator-2') throw new Error('away');
            // a validator that answers under another id
            return validatorReport(validatorId === 'validator-3' ? 'validator-1' : validatorId, []);
          },
        },
      },
      '',
    );
    expect(calls.toSorted()).toEqual(['validator-1', 'validator-2', 'validator-3', 'validator-9']);
    expect(found.map(({ validatorId, report }) => [validatorId, report !== undefined])).toEqual([
      ['validator-0', true],
      ['validator-1', true],
      ['validator-2', false],
      ['validator-3', false],
      ['validator-9', true],
    ]);
  });

  it('the report survives its encoding', () => {
    const counts = { ...zeroCounts(), rounds: 7, votesNil: 2, decidingMs: 41 };
    const report = {
      ...validatorReport('validator-0', [registerReport({ counts, status: 'Halted', reason: 'why' })]),
      heard: [{ validatorId: 'validator-1', heardAtMs: 123 }],
    };
    const bytes = toBinary(GetStatusResponseSchema, create(GetStatusResponseSchema, wireReport(report)));
    expect(reportOf(fromBinary(GetStatusResponseSchema, bytes))).toEqual(report);
  });
});
