import { create, fromBinary, type MessageShape } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { isAppError } from '#core/errors/errors.ts';
import { hostileMessages, spoilText } from '#kit/testing/hostile.ts';
import { createRandom } from '#kit/testing/random.ts';
import { GetStatusResponseSchema } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { assertReport } from '../reports/parse.ts';
import type { ValidatorReport } from '../reports/report.ts';
import { four, registerId, registerReport, validatorReport } from '../reports/reports.fixture.ts';
import { reportOf, wireReport } from '../reports/wire.ts';
import { answerOf } from '../submissions/clients.ts';
import { presentStatus } from './status.ts';

const cases = process.env['CHANCERY_TEST_LENGTH'] === 'full' ? 50_000 : 2_000;
const random = createRandom(Number(process.env['CHANCERY_TEST_SEED'] ?? 1));
const nowMs = 1_795_000_000_000;
const self = 'validator-0';
const own = validatorReport(self, [registerReport()]);

/** The parsed report of a message; undefined when it is refused. */
function take(message: MessageShape<typeof GetStatusResponseSchema>): ValidatorReport | undefined {
  try {
    return assertReport(reportOf(message));
  } catch (error) {
    if (isAppError(error, 'bad_gateway')) return undefined;
    throw error;
  }
}

describe('reports and answers of other validators', { timeout: 120_000 }, () => {
  test('a hostile report is refused or shown without harm to the others', () => {
    const other = {
      ...validatorReport('validator-1', [registerReport({ round: 3, reason: 'why' })]),
      heard: four.map((validatorId) => ({ validatorId, heardAtMs: nowMs })),
    };
    const hostile = hostileMessages(random, GetStatusResponseSchema, [wireReport(other), wireReport(own)]);
    let shown = 0;
    for (let index = 0; index < cases; index += 1) {
      let message: MessageShape<typeof GetStatusResponseSchema>;
      try {
        message = fromBinary(GetStatusResponseSchema, hostile.bytes());
      } catch {
        continue;
      }
      const report = take(message);
      if (report === undefined) continue;
      shown += 1;
      const answer = presentStatus(
        [
          { validatorId: self, report: own },
          { validatorId: 'validator-1', report },
        ],
        { self, nowMs },
      );
      expect(answer.validators).toHaveLength(2);
      expect(answer.registers.some((register) => register.registerId === registerId)).toBe(true);
    }
    expect(shown).toBeGreaterThan(cases / 100);
    expect(shown).toBeLessThan(cases);
  });

  test.each([
    ['a time that no date can write', { decidedAtMs: 2n ** 62n }],
    ['a register that is none', { registerId: 'x' }],
    ['a reason without end', { reason: 'x'.repeat(100_000) }],
    ['members without end', { members: Array<string>(10_000).fill('v') }],
  ])('a report with %s is refused', (_what, change) => {
    const message = create(GetStatusResponseSchema, wireReport(own));
    expect(take(message)).toBeDefined();
    Object.assign(message.registers[0] ?? {}, change);
    expect(take(message)).toBeUndefined();
  });

  test('an answer to a submission is within bounds or refused', () => {
    const text = JSON.stringify({ isValid: true, added: true, transactionId: 'ab'.repeat(32), errors: [] });
    const statuses = [0, 100, 200, 403, 503, 599, 600, 2 ** 32 - 1];
    let taken = 0;
    for (let index = 0; index < cases; index += 1) {
      const spoiled = random.chance(0.3) ? text : spoilText(random, text);
      const bodyJson = random.chance(0.1) ? random.bytes(80) : Buffer.from(spoiled);
      const retryAfterSeconds = random.pick([0, 1, 86_401, 2 ** 32 - 1]);
      try {
        const { status, body } = answerOf({ status: random.pick(statuses), bodyJson, retryAfterSeconds });
        expect(status).toBeGreaterThanOrEqual(200);
        expect(status).toBeLessThan(600);
        expect(typeof body).toBe('object');
        taken += 1;
      } catch (error) {
        if (!isAppError(error, 'bad_gateway')) throw error;
      }
    }
    expect(taken).toBeGreaterThan(0);
    const huge = Buffer.from(`{"a":"${'x'.repeat(300_000)}"}`);
    expect(() => answerOf({ status: 200, bodyJson: huge, retryAfterSeconds: 0 })).toThrow(
      expect.objectContaining({ kind: 'bad_gateway' }),
    );
  });
});
