import { expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { type ManualTiming, manualTiming, settle } from '../../kube/testing/manual-timing.ts';
import { FakeMembers } from '../../platform/testing/fake-members.ts';
import { testInstallation } from '../../platform/testing/installation.fixture.ts';
import { MemberWatch } from './watch-members.ts';

const key = 'acme/main';
const pods = [0, 1].map((each) => ({
  uid: `uid-${each}`,
  name: `main-${each}`,
  address: `10.0.0.${each}`,
  isReady: true,
}));

function follow(members = new FakeMembers()) {
  const timing: ManualTiming = manualTiming();
  const news: string[] = [];
  const { log } = testRuntime('operator', { level: 'silent' });
  const watch = new MemberWatch({ members, timing, log, onNews: (each) => news.push(each) });
  watch.follow(key, testInstallation(), pods);
  return { watch, members, timing, news };
}

test('every member is asked at once and again; only what is new is told', async () => {
  const { watch, members, timing, news } = follow();
  await timing.advance(0);
  expect(watch.answerOf(key, 'uid-0').report?.validatorId).toBe('validator-main-0');
  expect(news).toEqual([key]);
  await timing.advance(10_000);
  expect(news).toEqual([key]);
  members.registers.set('0'.repeat(32), { members: ['validator-main-0'], height: 1 });
  await timing.advance(3_000);
  expect(news).toEqual([key, key]);
  members.registers.set('0'.repeat(32), { members: ['validator-main-0'], height: 2 });
  await timing.advance(3_000);
  expect(news).toEqual([key, key]);
  expect(watch.answerOf(key, 'uid-0').report?.registers[0]?.height).toBe(2);
});

test('who is silent is unknown at once, and what is known is when it was last heard', async () => {
  const { watch, members, timing, news } = follow();
  await timing.advance(0);
  const heardAtMs = watch.answerOf(key, 'uid-1').answeredAtMs;
  members.silent.add('main-1');
  await timing.advance(3_000);
  expect(watch.answerOf(key, 'uid-1')).toEqual({ answeredAtMs: heardAtMs });
  expect(watch.answerOf(key, 'uid-0').report).toBeDefined();
  expect(news).toEqual([key, key]);
});

test('a member that hangs hides nothing of the others, and counts again when it answers', async () => {
  const { watch, members, timing, news } = follow();
  members.silent.add('main-1');
  await timing.advance(0);
  expect(news).toEqual([key]);
  const answer = Promise.withResolvers<void>();
  members.held.set('main-1', answer.promise);
  await timing.advance(3_000);
  members.silent.add('main-0');
  await timing.advance(3_000);
  expect(watch.answerOf(key, 'uid-0').report).toBeUndefined();
  expect(news).toEqual([key, key]);
  members.silent.clear();
  answer.resolve();
  await settle();
  expect(watch.answerOf(key, 'uid-1').report).toBeDefined();
  expect(news).toEqual([key, key, key]);
  await timing.advance(3_000);
  expect(watch.answerOf(key, 'uid-0').report).toBeDefined();
});

test('a pod that is another one by now has said nothing', async () => {
  const { watch, timing } = follow();
  await timing.advance(0);
  expect(watch.answerOf(key, 'uid-9')).toEqual({});
  const [first] = pods;
  watch.follow(key, testInstallation(), first === undefined ? [] : [{ ...first, uid: 'uid-9' }]);
  await timing.advance(0);
  expect(watch.answerOf(key, 'uid-9').report).toBeDefined();
});

test('where nobody can be asked it says why, and asks nobody', async () => {
  const members = new FakeMembers();
  members.fault = new AppError('unavailable', 'WORKLOAD_IDENTITY_MISSING', 'no identity yet');
  const { watch, timing, news } = follow(members);
  await timing.advance(0);
  expect(watch.blindOf(key)).toBe('no identity yet');
  expect(watch.answerOf(key, 'uid-0')).toEqual({});
  members.fault = undefined;
  await timing.advance(3_000);
  expect(watch.blindOf(key)).toBeUndefined();
  expect(news).toEqual([key, key]);
});

test('a refresh asks everybody anew, and nobody is asked after the end', async () => {
  const { watch, members, timing } = follow();
  await timing.advance(0);
  members.silent.add('main-0');
  const refreshed = watch.refresh(key);
  await settle();
  await refreshed;
  expect(watch.answerOf(key, 'uid-0').report).toBeUndefined();
  watch.forget(key);
  members.silent.clear();
  await timing.advance(60_000);
  expect(watch.answerOf(key, 'uid-0')).toEqual({});
});
