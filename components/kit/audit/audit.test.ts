import { describe, expect, it } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { manualClock } from '#kit/clock/clock.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { type GatheredRefusal, mostAtOnce, RefusalLog } from './audit.ts';

const minuteMs = 60_000;
const refused = {
  organizationId: 'acme',
  action: 'wallet.sign',
  reason: 'GRANT_MISSING',
  resourceType: 'wallet',
  resourceId: 'w1a',
  platformUserId: 'anna',
};

function world() {
  const clock = manualClock(Date.UTC(2026, 10, 21, 12));
  const runtime = testRuntime('service-wallet', { clock });
  const reported: (readonly GatheredRefusal[])[] = [];
  let failure: unknown;
  const log = new RefusalLog({
    clock,
    log: runtime.log,
    report: async (gathered) => {
      if (failure !== undefined) throw failure;
      reported.push(gathered);
    },
  });
  const fail = (error: unknown) => {
    failure = error;
  };
  return { clock, runtime, log, reported, fail };
}

describe('reporting of refusals to the audit log', () => {
  it('aggregates refusals by minute and reports them once', async () => {
    const { clock, log, reported } = world();
    const first = clock.nowMs();
    log.count(refused);
    clock.advance(1_000);
    log.count(refused);
    log.count({ ...refused, platformUserId: 'ben' });
    clock.advance(minuteMs);
    log.count(refused);
    await log.flush();
    expect(reported).toEqual([
      [
        { ...refused, occurredAtMs: first, occurrences: 2 },
        { ...refused, platformUserId: 'ben', occurredAtMs: first + 1_000, occurrences: 1 },
        { ...refused, occurredAtMs: first + 1_000 + minuteMs, occurrences: 1 },
      ],
    ]);
    await log.flush();
    expect(reported).toHaveLength(1);
  });

  it('keeps refusals while the tenant service is unavailable and merges new ones', async () => {
    const { runtime, log, reported, fail } = world();
    log.count(refused);
    fail(new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'away'));
    await log.flush();
    log.count(refused);
    await log.flush();
    expect(reported).toEqual([]);
    fail(undefined);
    await log.flush();
    expect(reported).toEqual([[expect.objectContaining({ ...refused, occurrences: 2 })]]);
    expect(runtime.lines.map(({ msg }) => msg)).toEqual([
      'refusals cannot be reported to the tenant service now; they are kept and retried',
      'refusals are reported again',
    ]);
  });

  it('reports in batches; batches reported before a failure are not repeated', async () => {
    const { log, reported, fail } = world();
    const of = (n: number) => ({ ...refused, resourceId: `w${n}` });
    for (let n = 0; n < 2 * mostAtOnce + 7; n += 1) log.count(of(n));
    await log.flush();
    expect(reported.map((some) => some.length)).toEqual([mostAtOnce, mostAtOnce, 7]);
    for (let n = 0; n < mostAtOnce + 1; n += 1) log.count(of(n));
    fail(new AppError('timeout', 'TIMEOUT', 'too late'));
    await log.flush();
    fail(undefined);
    await log.flush();
    expect(reported.map((some) => some.length).slice(3)).toEqual([mostAtOnce, 1]);
  });

  it('logs refusals that the tenant service rejects, and sends the next ones', async () => {
    const { runtime, log, reported, fail } = world();
    log.count(refused);
    fail(new AppError('forbidden', 'FORBIDDEN', 'no scope'));
    await log.flush();
    expect(runtime.lines).toMatchObject([{ level: 'error', refusals: [refused] }]);
    fail(undefined);
    log.count({ ...refused, platformUserId: 'ben' });
    await log.flush();
    expect(reported).toMatchObject([[{ platformUserId: 'ben', occurrences: 1 }]]);
  });

  it('bounds the pending refusals and logs the excess', () => {
    const { runtime, log } = world();
    for (let n = 0; n < 10_001; n += 1) log.count({ ...refused, resourceId: `w${n}` });
    log.count({ ...refused, resourceId: 'w5' });
    expect(runtime.lines).toMatchObject([{ refused: { resourceId: 'w10000' } }]);
  });
});
