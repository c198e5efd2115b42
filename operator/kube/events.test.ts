import { beforeEach, expect, test } from 'vitest';
import { type ManualTiming, manualTiming } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { type ApiRequest, guarded } from './api.ts';
import { NotLeader } from './errors.ts';
import { type EventDetails, EventRecorder, kubeEvents } from './events.ts';
import { ClusterState } from './testing/cluster-state.ts';
import { type DirectApi, directApi } from './testing/direct-api.ts';
import { advanceUntil, at, make, type TestMetrics, testMetrics, widgets } from './testing/fixtures.ts';

let state: ClusterState;
let timing: ManualTiming;
let api: DirectApi;
let counted: TestMetrics;

const widget = make(widgets, 'main', {}, { uid: 'uid-main', resourceVersion: '7' });
const blocked: EventDetails = {
  type: 'Warning',
  reason: 'RolloutBlocked',
  action: 'Roll',
  note: 'Three of four members answer; three are needed',
};

beforeEach(() => {
  state = new ClusterState();
  timing = manualTiming();
  api = directApi(state, timing);
  counted = testMetrics();
});

function recorder(to = guarded(api, () => 5_000)): EventRecorder {
  const { log } = testRuntime('operator');
  const controller = 'test.dev/operator';
  return new EventRecorder({ api: to, timing, metrics: counted.metrics, log, controller, instance: 'pod-1' });
}

async function report(one: EventRecorder, what: EventDetails, object = widget): Promise<void> {
  one.record(object, what);
  await timing.advance(1);
  await one.flush();
}

const events = () => state.list(at(kubeEvents));
const verbs = () => api.calls.map(({ verb }: ApiRequest) => verb);

test('an event has reporter, content and regarded object', async () => {
  await report(recorder(), blocked);
  expect(events()).toEqual([
    expect.objectContaining({
      eventTime: expect.stringMatching(/\.\d{6}Z$/),
      reportingController: 'test.dev/operator',
      reportingInstance: 'pod-1',
      regarding: {
        apiVersion: 'test.dev/v1',
        kind: 'Widget',
        name: 'main',
        namespace: 'acme',
        uid: 'uid-main',
        resourceVersion: '7',
      },
      ...blocked,
    }),
  ]);
  expect(events()[0]?.metadata.name).toMatch(/^main\.[0-9a-f]+$/);
});

test('repeated events form one series, written with exponentially growing intervals', async () => {
  const one = recorder();
  for (let count = 0; count < 100; count += 1) await report(one, blocked);
  expect(events()).toHaveLength(1);
  expect(events()[0]?.['series']).toMatchObject({ count: 64 });
  expect(verbs()).toEqual(['create', ...Array(6).fill('patch')]);
});

test('a continuing series is written every 30 minutes and created again after the cluster deleted it', async () => {
  const one = recorder();
  for (let count = 0; count < 3; count += 1) await report(one, blocked);
  expect(verbs()).toHaveLength(2);
  await timing.advance(31 * 60_000);
  await report(one, blocked);
  await report(one, blocked);
  expect(verbs()).toHaveLength(3);
  const [first] = events();
  state.delete(at(kubeEvents, first?.metadata.name), undefined);
  await timing.advance(31 * 60_000);
  await report(one, blocked);
  expect(events()).toHaveLength(1);
  expect(events()[0]).not.toHaveProperty('series');
});

test('the rate of events is limited per object', async () => {
  const one = recorder();
  for (let count = 0; count < 200; count += 1) await report(one, { ...blocked, note: `Try ${count}` });
  expect(events()).toHaveLength(25);
  await report(one, blocked, make(widgets, 'other', {}, { uid: 'uid-other' }));
  expect(events()).toHaveLength(26);
  expect(await counted.read('kube_events_total', { outcome: 'limited' })).toBe(175);
  await timing.advance(300_000);
  await report(one, { ...blocked, note: 'Another' });
  expect(events()).toHaveLength(27);
});

test('recording an event never blocks and never throws', async () => {
  const one = recorder();
  api.delivery = () => ({ lost: 'request' });
  for (let count = 0; count < 1_500; count += 1) one.record(widget, { ...blocked, note: `Try ${count}` });
  expect(await counted.read('kube_events_total', { outcome: 'dropped' })).toBeGreaterThan(400);
  let isStopped = false;
  void one.stop().then(() => {
    isStopped = true;
  });
  await advanceUntil(timing, 'the end', () => isStopped);
  one.record(widget, blocked);
  expect(await counted.read('kube_events_total', { outcome: 'failed' })).toBeGreaterThan(0);
  expect(events()).toEqual([]);
});

test('a process that does not lead writes no events', async () => {
  const fenced = guarded(api, () => {
    throw new NotLeader();
  });
  await report(recorder(fenced), blocked);
  expect(api.calls).toEqual([]);
});

test('a too long note is cut', async () => {
  await report(recorder(), { ...blocked, note: 'x'.repeat(3_000) });
  expect(String(events()[0]?.['note'])).toHaveLength(1_024);
});
