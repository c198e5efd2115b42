import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { GetStatusResponseSchema } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import type { Rejection } from '../../chain/sealing/rejections.ts';
import { presentStatus } from '../admin/status.ts';
import { presentRejections } from './rejections.ts';
import { collected, registerReport, validatorReport } from './reports.fixture.ts';
import { reportOf, wireReport } from './wire.ts';

function rejection(docketNumber: number, validatorId = 'validator-1'): Rejection {
  const vote = {
    docketHash: 'ab'.repeat(32),
    validatorAddress: 'w1abc',
    approved: false,
    timestamp: '2026-11-21T10:00:00.0000000+00:00',
    signature: '07'.repeat(64),
    reason: 'VAL_SIZE_001: too large',
    validatorId,
    algorithm: 'ED25519',
    publicKey: 'AAAA',
  } as const;
  return { docketNumber, vote };
}

function travelled(rejections: readonly Rejection[]) {
  const report = validatorReport('validator-0', [registerReport({ rejections })]);
  const bytes = toBinary(GetStatusResponseSchema, create(GetStatusResponseSchema, wireReport(report)));
  return reportOf(fromBinary(GetStatusResponseSchema, bytes)).registers[0]?.rejections;
}

describe('rejected proposals in reports', () => {
  test('are encoded unchanged, the latest 32 of them', () => {
    expect(travelled([rejection(4)])).toEqual([rejection(4)]);
    const many = Array.from({ length: 40 }, (_, height) => rejection(height));
    expect(travelled(many)).toEqual(many.slice(8));
  });

  test('are dropped when the vote approves the docket', () => {
    const { docketNumber, vote } = rejection(4);
    expect(travelled([{ docketNumber, vote: { ...vote, approved: true } }])).toEqual([]);
  });

  test('are shown once each, newest docket first, in the shape of the specification', () => {
    const one = { rejections: [rejection(3), rejection(4)] };
    const other = { rejections: [rejection(4), rejection(4, 'validator-2')] };
    const shown = presentRejections([one, other]);
    expect(shown.map(({ docketNumber, validatorId }) => [docketNumber, validatorId])).toEqual([
      [4, 'validator-1'],
      [4, 'validator-2'],
      [3, 'validator-1'],
    ]);
    expect(shown[0]).toMatchObject({ approved: false, reason: 'VAL_SIZE_001: too large' });
    const report = registerReport(one);
    const { registers } = presentStatus(collected({ 'validator-0': report }), {
      self: 'validator-0',
      nowMs: 9,
    });
    expect(registers[0]?.rejections).toHaveLength(2);
  });
});
