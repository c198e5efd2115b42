import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { manualClock } from '#kit/clock/clock.ts';
import { GetStatusResponseSchema } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { WorkCounter, zeroWork } from '../../chain/sealing/work-counter.ts';
import { serviceCaller, TestServer, userCaller } from '../../testing/test-server.ts';
import { registerId } from '../../testing/world.ts';
import { assertReport } from '../reports/parse.ts';
import { collected, registerReport, validatorReport } from '../reports/reports.fixture.ts';
import { reportOf, wireReport } from '../reports/wire.ts';
import { presentDockets, presentMempool, presentTransactions } from './present.ts';

const hourMs = 3_600_000;

describe('work counters', () => {
  it('count since the start and for 24 hours', () => {
    const clock = manualClock(1_000 * hourMs);
    const work = new WorkCounter(clock);
    work.count('confirmed', 5);
    clock.advance(23 * hourMs);
    work.count('confirmed', 2);
    expect(work.report.lastDay.confirmed).toBe(7);
    clock.advance(hourMs);
    expect(work.report.lastDay.confirmed).toBe(2);
    expect(work.report.total.confirmed).toBe(7);
    clock.advance(24 * hourMs);
    expect(work.report.lastDay).toEqual(zeroWork());
  });

  it('measure durations, and count only calls with a result', () => {
    const clock = manualClock(0);
    const work = new WorkCounter(clock);
    expect(work.timed('built', () => undefined)).toBeUndefined();
    const took = (ms: number) => () => {
      clock.advance(ms);
      return 'docket';
    };
    expect(work.timed('built', took(3))).toBe('docket');
    expect(work.total).toMatchObject({ built: 1, buildingMicros: 3_000, judged: 0 });
    const first = work.received();
    const second = work.received();
    clock.advance(2);
    work.rejected(first, 'INTERNAL_ERROR');
    clock.advance(1);
    work.validated(second);
    expect(work.report).toMatchObject({
      total: { received: 2, validated: 1, rejected: 1, validatingMicros: 5_000 },
      errorsByCode: { INTERNAL_ERROR: 1 },
    });
  });

  it('survive their encoding', () => {
    const work = { total: zeroWork(), lastDay: zeroWork(), errorsByCode: { VAL_SIG_002: 3 } };
    Object.assign(work.total, { received: 9, buildingMicros: 1_234 });
    const pool = { control: 1, action: 2, bytes: 3, maxSize: 4, oldestAtMs: 5 };
    const sent = validatorReport('validator-1', [registerReport({ work, pool })]);
    const bytes = toBinary(GetStatusResponseSchema, create(GetStatusResponseSchema, wireReport(sent)));
    const got = assertReport(reportOf(fromBinary(GetStatusResponseSchema, bytes)));
    expect(got.registers[0]).toMatchObject({ work, pool });
    const tooMany = Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`C${index}`, 1]));
    const lie = registerReport({ work: { ...work, errorsByCode: tooMany } });
    expect(() => assertReport(validatorReport('validator-1', [lie]))).toThrow();
  });
});

describe('metrics of a set', () => {
  const allMessages = { self: 'validator-0', isVisible: () => true };
  const worked = (over: object) => ({
    ...registerReport().work,
    total: { ...zeroWork(), ...over },
    lastDay: { ...zeroWork(), ...over },
  });
  const reports = collected({
    'validator-0': registerReport({
      work: worked({
        received: 4,
        rejected: 1,
        validated: 3,
        built: 2,
        buildingMicros: 3_000,
        stored: 5,
        confirmed: 9,
      }),
      memPoolSize: 1,
    }),
    'validator-1': registerReport({
      work: worked({
        received: 2,
        validated: 2,
        built: 1,
        judged: 4,
        judgingMicros: 8_000,
        stored: 4,
        confirmed: 8,
      }),
      memPoolSize: 3,
      pool: { control: 1, action: 2, bytes: 77, maxSize: 8, oldestAtMs: 1_000 },
    }),
  });

  it('sum what each member does, and count once what all members see', () => {
    expect(presentDockets(reports, allMessages)).toMatchObject({
      totalDocketsBuilt: 3,
      totalDocketsValidated: 4,
      averageBuildTime: 1,
      averageValidationTime: 2,
      averageTransactionsPerDocket: 1.8,
      consensusSuccessRate: 1,
      last24Hours: { docketsBuilt: 3, docketsSealed: 5, transactions: 9 },
      unreachable: ['validator-2', 'validator-3'],
    });
    expect(presentTransactions(reports, allMessages)).toMatchObject({
      totalReceived: 6,
      totalValidated: 5,
      totalRejected: 1,
      totalConfirmed: 9,
    });
    expect(presentMempool(reports, allMessages).registers).toEqual([
      {
        registerId,
        pending: 3,
        verified: 3,
        highPriority: 1,
        normalPriority: 2,
        lowPriority: 0,
        maxSize: 8,
        fillPercentage: 25,
        bytes: 77,
        oldestTransaction: '1970-01-01T00:00:01.000Z',
        totalEvictions: 0,
        totalExpired: 0,
      },
    ]);
  });

  it('omit registers that the caller may not see', () => {
    const nothing = { self: 'validator-0', isVisible: () => false };
    expect(presentMempool(reports, nothing).registers).toEqual([]);
    expect(presentTransactions(reports, nothing)).toMatchObject({ totalReceived: 0, errorsByCode: {} });
    expect(presentDockets(reports, nothing)).toMatchObject({ totalDocketsBuilt: 0, consensusSuccessRate: 1 });
  });
});

describe('GET /api/metrics and health', () => {
  const served = new TestServer();
  const { world } = served;
  beforeAll(() => served.open());
  afterAll(() => served.close());
  const metrics = async (name: string) => (await served.send('GET', `/api/metrics/${name}`)).json();

  it('counts accepted, refused and sealed submissions', async () => {
    expect((await world.submit(world.sign().text)).status).toBe(200);
    const wrong = world.sign({ tamper: { PayloadHash: '00'.repeat(32) } });
    expect((await world.submit(wrong.text)).status).toBe(400);
    await world.sealed(2);
    const told = await metrics('transactions');
    // The genesis transaction is included.
    expect(told).toMatchObject({
      totalReceived: 3,
      totalValidated: 2,
      totalRejected: 1,
      errorsByCode: { VAL_HASH_001: 1 },
    });
    expect(told.averageValidationTime).toBeGreaterThan(0);
    const dockets = await metrics('dockets');
    expect(dockets.totalDocketsBuilt).toBeGreaterThanOrEqual(2);
    expect(dockets.totalDocketsValidated).toBeGreaterThanOrEqual(2);
    expect(dockets.averageBuildTime).toBeGreaterThan(0);
    await world.engine.setMode(registerId, 'Paused');
    await world.submit(world.sign().text);
    expect((await metrics('mempool')).registers).toMatchObject([
      { registerId, pending: 1, normalPriority: 1 },
    ]);
  });

  it('shows organisations the registers that they subscribe to', async () => {
    served.caller = userCaller;
    expect((await metrics('mempool')).registers).toHaveLength(1);
    served.announced.push('validator-1');
    served.peerClients.report = async (validatorId) =>
      validatorReport(
        validatorId,
        ['ab', 'cd'].map((id) => registerReport({ registerId: id.repeat(16) })),
      );
    served.listed.length = 0;
    expect((await metrics('mempool')).unreachable).toEqual([]);
    // One request for all registers.
    expect(served.listed).toEqual([[registerId, 'ab'.repeat(16), 'cd'.repeat(16)]]);
    served.announced.length = 0;
    served.subscriptions.isSubscribed = async () => false;
    expect((await metrics('mempool')).registers).toEqual([]);
    expect(await metrics('transactions')).toMatchObject({ totalReceived: 0, errorsByCode: {} });
    served.caller = serviceCaller;
    expect((await metrics('mempool')).registers).toHaveLength(1);
  });

  it('reports readiness, and liveness independently of it', async () => {
    const ask = async (path: string) => {
      const answer = await served.send('GET', path);
      return [answer.statusCode, answer.json()];
    };
    expect(await ask('/health')).toEqual([200, { status: 'Healthy' }]);
    served.health.isWell = false;
    expect(await ask('/health')).toEqual([503, { status: 'Unhealthy' }]);
    expect(await ask('/alive')).toEqual([200, { status: 'Healthy' }]);
  });
});
