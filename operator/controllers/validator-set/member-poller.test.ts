import { describe, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { type ManualTiming, manualTiming, settle } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { FakeMembers } from '../../platform/testing/fake-members.ts';
import { testInstallation } from '../../platform/testing/installation.fixture.ts';
import { MemberPoller } from './member-poller.ts';

const key = 'acme/main';
const pods = [0, 1].map((each) => ({
  uid: `uid-${each}`,
  name: `main-${each}`,
  address: `10.0.0.${each}`,
  isReady: true,
}));

function poll(members = new FakeMembers()) {
  const timing: ManualTiming = manualTiming();
  const news: string[] = [];
  const { log } = testRuntime('operator', { level: 'silent' });
  const watch = new MemberPoller({ members, timing, log, onChange: (each) => news.push(each) });
  watch.poll(key, testInstallation(), pods);
  return { watch, members, timing, news };
}

test('every member is queried at once and repeatedly; only changes are notified', async () => {
  const { watch, members, timing, news } = poll();
  await timing.advance(0);
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true }).report?.validatorId).toBe(
    'validator-main-0',
  );
  expect(news).toEqual([key]);
  await timing.advance(10_000);
  expect(news).toEqual([key]);
  members.registers.set('0'.repeat(32), { members: ['validator-main-0'], height: 1 });
  await timing.advance(3_000);
  expect(news).toEqual([key, key]);
  members.registers.set('0'.repeat(32), { members: ['validator-main-0'], height: 2 });
  await timing.advance(3_000);
  expect(news).toEqual([key, key]);
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true }).report?.registers[0]?.height).toBe(2);
});

test('the time of the last change of a height is known', async () => {
  const { watch, members, timing } = poll();
  const registerId = '0'.repeat(32);
  const since = () => watch.pollResultOf(key, { uid: 'uid-0', isReady: true }).heightSinceMs?.get(registerId);
  const summary = (height: number) =>
    members.registers.set(registerId, { members: ['validator-main-0'], height });
  summary(1);
  await timing.advance(0);
  const first = timing.nowMs();
  expect(since()).toBe(first);
  await timing.advance(6_000);
  expect(since()).toBe(first);
  summary(2);
  await timing.advance(3_000);
  expect(since()).toBe(first + 9_000);
});

test('a silent member is unknown at once, and its last answer time is kept', async () => {
  const { watch, members, timing, news } = poll();
  await timing.advance(0);
  const heardAtMs = watch.pollResultOf(key, { uid: 'uid-1', isReady: true }).answeredAtMs;
  members.silent.add('main-1');
  await timing.advance(3_000);
  expect(watch.pollResultOf(key, { uid: 'uid-1', isReady: true })).toEqual({ answeredAtMs: heardAtMs });
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true }).report).toBeDefined();
  expect(news).toEqual([key, key]);
});

test('a hanging member does not delay the reports of others, and counts again when it answers', async () => {
  const { watch, members, timing, news } = poll();
  members.silent.add('main-1');
  await timing.advance(0);
  expect(news).toEqual([key]);
  const answer = Promise.withResolvers<void>();
  members.held.set('main-1', answer.promise);
  await timing.advance(3_000);
  members.silent.add('main-0');
  await timing.advance(3_000);
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true }).report).toBeUndefined();
  expect(news).toEqual([key, key]);
  members.silent.clear();
  answer.resolve();
  await settle();
  expect(watch.pollResultOf(key, { uid: 'uid-1', isReady: true }).report).toBeDefined();
  expect(news).toEqual([key, key, key]);
  await timing.advance(3_000);
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true }).report).toBeDefined();
});

test('a replaced pod has no report', async () => {
  const { watch, timing } = poll();
  await timing.advance(0);
  expect(watch.pollResultOf(key, { uid: 'uid-9', isReady: true })).toEqual({ isUnqueried: true });
  const [first] = pods;
  watch.poll(key, testInstallation(), first === undefined ? [] : [{ ...first, uid: 'uid-9' }]);
  await timing.advance(0);
  expect(watch.pollResultOf(key, { uid: 'uid-9', isReady: true }).report).toBeDefined();
});

test('without an identity the reason is reported and no member is queried', async () => {
  const members = new FakeMembers();
  members.fault = new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'no identity yet');
  const { watch, timing, news } = poll(members);
  await timing.advance(0);
  expect(watch.unreachableReason(key)).toBe('no identity yet');
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true })).toEqual({ isUnqueried: true });
  members.fault = undefined;
  await timing.advance(3_000);
  expect(watch.unreachableReason(key)).toBeUndefined();
  expect(news).toEqual([key, key]);
});

test('a refresh queries every member again, and no member is queried after the stop', async () => {
  const { watch, members, timing } = poll();
  await timing.advance(0);
  members.silent.add('main-0');
  const refreshed = watch.refresh(key);
  await settle();
  await refreshed;
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true }).report).toBeUndefined();
  watch.forget(key);
  members.silent.clear();
  await timing.advance(60_000);
  expect(watch.pollResultOf(key, { uid: 'uid-0', isReady: true })).toEqual({ isUnqueried: true });
});

describe('a member that becomes ready', () => {
  const [first, second] = [
    { uid: 'uid-0', name: 'main-0', address: '10.0.0.0' },
    { uid: 'uid-1', name: 'main-1', address: '10.0.0.1' },
  ];
  const look = (watch: MemberPoller, isReady: boolean) =>
    watch.poll(key, testInstallation(), [
      { ...first, isReady: true },
      { ...second, isReady },
    ]);
  const answer = (watch: MemberPoller) => watch.pollResultOf(key, { uid: 'uid-1', isReady: true });

  test('counts as not queried until then, also after silence', async () => {
    const { watch, members, timing } = poll();
    members.silent.add('main-1');
    look(watch, false);
    await timing.advance(3_000);
    expect(answer(watch)).toEqual({ isUnqueried: true });
    look(watch, true);
    await settle();
    expect(answer(watch)).toEqual({});
  });

  test('is queried at once, although a round waits for another member', async () => {
    const { watch, members, timing, news } = poll();
    look(watch, false);
    const hangs = Promise.withResolvers<void>();
    members.held.set('main-0', hangs.promise);
    await timing.advance(0);
    watch.poll(key, testInstallation(), [
      { ...first, isReady: true },
      { ...second, uid: 'uid-9', isReady: true },
    ]);
    await settle();
    expect(watch.pollResultOf(key, { uid: 'uid-9', isReady: true }).report).toBeDefined();
    expect(news).toEqual([key]);
    hangs.resolve();
    await settle();
    expect(watch.pollResultOf(key, { uid: 'uid-9', isReady: true }).report).toBeDefined();
  });

  test.each([
    ['that began before it was ready', false],
    ['that began when it was ready before', true],
  ])('is not taken for silent because of a question %s', async (_, wasReady) => {
    const { watch, members, timing } = poll();
    look(watch, wasReady);
    members.silent.add('main-1');
    await timing.advance(0);
    members.silent.clear();
    // from now on it is queried outside the rounds
    const dropped = Promise.withResolvers<void>();
    members.held.set('main-1', dropped.promise);
    await timing.advance(3_000);
    members.held.delete('main-1');
    look(watch, false);
    await timing.advance(0);
    look(watch, true);
    await settle();
    expect(answer(watch).report).toBeDefined();
    members.silent.add('main-1');
    dropped.resolve();
    await settle();
    expect(answer(watch).report).toBeDefined();
  });

  test('does not count as silent because of an older round', async () => {
    const { watch, members, timing } = poll();
    look(watch, false);
    const dropped = Promise.withResolvers<void>();
    members.held.set('main-1', dropped.promise);
    await timing.advance(0);
    members.held.delete('main-1');
    look(watch, true);
    await settle();
    expect(answer(watch).report).toBeDefined();
    members.silent.add('main-1');
    dropped.resolve();
    await settle();
    expect(answer(watch).report).toBeDefined();
    await timing.advance(3_000);
    expect(answer(watch)).toMatchObject({ answeredAtMs: expect.any(Number) });
    expect(answer(watch).report).toBeUndefined();
  });
});
