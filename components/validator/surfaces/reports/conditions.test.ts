import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { GetStatusResponseSchema } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { presentStatus } from '../admin/status.ts';
import type { EvidenceSummary } from './conditions.ts';
import { collected, four, registerReport, validatorReport } from './reports.fixture.ts';
import { reportOf, wireReport } from './wire.ts';

const vote = (validatorId: string, height = 3, seenAtMs = 5_000): EvidenceSummary => ({
  kind: 'duplicate-vote',
  validatorIds: [validatorId],
  height,
  seenAtMs,
});

/** The status answer of validator-0 when the members hold the given evidence. */
function statusOf(held: Readonly<Record<string, readonly EvidenceSummary[]>>, away: readonly string[] = []) {
  const reports = four.map((id) => {
    const report = away.includes(id) ? undefined : registerReport({ evidence: held[id] ?? [] });
    return [id, report] as const;
  });
  const [register] = presentStatus(collected(Object.fromEntries(reports)), {
    self: 'validator-0',
    nowMs: 61_000,
  }).registers;
  const members = Object.fromEntries(
    (register?.members ?? []).map(({ validatorId, conditions }) => [validatorId, conditions]),
  );
  return { register: register?.conditions, members };
}

describe('EquivocationDetected', () => {
  test('is a condition of the register and of the member, by its earliest evidence', () => {
    const { register, members } = statusOf({
      'validator-0': [vote('validator-2', 7, 9_000), vote('validator-2', 3, 6_000)],
      'validator-1': [vote('validator-2', 3, 5_000)],
    });
    const condition = {
      type: 'EquivocationDetected',
      status: 'True',
      reason: 'DuplicateVote',
      message: 'validator-2 signed two conflicting messages at docket 3',
      since: '1970-01-01T00:00:05.000Z',
    };
    expect(register).toEqual([{ ...condition, validatorIds: ['validator-2'] }]);
    expect(members).toEqual({
      'validator-0': [],
      'validator-1': [],
      'validator-2': [condition],
      'validator-3': [],
    });
  });

  test('needs two other members that report it', () => {
    const lie = [vote('validator-3')];
    expect(statusOf({ 'validator-1': lie }).register).toEqual([]);
    expect(statusOf({ 'validator-1': [...lie, ...lie] }).register).toEqual([]);
    expect(statusOf({ 'validator-1': lie, 'validator-2': lie }).register).toHaveLength(1);
    expect(statusOf({ 'validator-0': lie }).register).toHaveLength(1);
  });

  test('names an unreachable member, and all members that two certificates convict', () => {
    const both = ['validator-2', 'validator-3'];
    const { register, members } = statusOf(
      { 'validator-0': [{ ...vote(''), kind: 'conflicting-certificate', validatorIds: both }] },
      ['validator-3'],
    );
    expect(register).toMatchObject([{ reason: 'ConflictingCertificate', validatorIds: both }]);
    expect(members['validator-3']).toMatchObject([{ reason: 'ConflictingCertificate' }]);
  });

  test('survives its encoding; unknown kinds are dropped', () => {
    const evidence = [vote('validator-2')];
    const report = validatorReport('validator-1', [registerReport({ evidence })]);
    const travel = (wire: ReturnType<typeof wireReport>) =>
      reportOf(
        fromBinary(
          GetStatusResponseSchema,
          toBinary(GetStatusResponseSchema, create(GetStatusResponseSchema, wire)),
        ),
      );
    expect(travel(wireReport(report))).toEqual(report);
    const strange = wireReport(report);
    const registers = strange.registers.map((each) => ({
      ...each,
      evidence: each.evidence.map((one) => ({ ...one, kind: 'slander', seenAtMs: 2n ** 62n })),
    }));
    expect(travel({ ...strange, registers } as typeof strange).registers[0]?.evidence).toEqual([]);
  });
});
