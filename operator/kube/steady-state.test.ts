import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemTiming } from '#kit/clock/timing.ts';
import { type ManualTiming, manualTiming } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { Applier, type Child } from './apply.ts';
import { Controller } from './controller.ts';
import { HttpApi } from './http.ts';
import { Leader, leases } from './leader.ts';
import { priority } from './queue.ts';
import { Reflector } from './reflector.ts';
import { type KubeObject, keyOf, type Resource } from './resource.ts';
import { StatusWriter } from './status.ts';
import { byOwner, ownerIndex, Store } from './store.ts';
import { type ApiServer, type ReceivedRequest, startApiServer } from './testing/api-server.ts';
import {
  advanceUntil,
  at,
  configMaps,
  credentialsFor,
  make,
  put,
  testMetrics,
  widgets,
} from './testing/fixtures.ts';

const COUNT = 300;

/** A complete operator: every widget gets a ConfigMap and a status. */
interface Operator {
  readonly leader: Leader;
  readonly controller: Controller;
  readonly reconciled: Set<string>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

let server: ApiServer;
let timing: ManualTiming;
let operators: Operator[];

beforeEach(async () => {
  server = await startApiServer();
  timing = manualTiming();
  operators = [];
});

afterEach(async () => {
  await Promise.all(operators.map((each) => each.stop()));
  await server.close();
});

function childOf(widget: KubeObject): Child {
  const data = { value: JSON.stringify(widget['spec'] ?? null) };
  return { resource: configMaps, object: make(configMaps, widget.metadata.name, { data }) };
}

function startOperator(identity: string): Operator {
  const { metrics } = testMetrics();
  const { log } = testRuntime('operator', { level: 'silent' });
  // the network is on real time, timers are on manual time
  const rate = { perSecond: 10_000, burst: 10_000 };
  const api = new HttpApi({ credentials: credentialsFor(server.url), timing: systemTiming(), metrics, rate });
  const stores = new Map<Resource, Store>();
  const reflectors = [widgets, configMaps].map((resource) => {
    const store = new Store({ [ownerIndex]: byOwner }, () => undefined);
    stores.set(resource, store);
    return new Reflector({ api, store, timing, metrics, log, resource });
  });
  const leader = new Leader({ api, timing, metrics, log, namespace: 'acme', name: 'operator', identity });
  const fenced = leader.fence(api);
  const cacheOf = (resource: Resource) => stores.get(resource);
  const applier = new Applier({
    api: fenced,
    timing,
    manager: 'test',
    hashAnnotation: 'test.dev/applied',
    cacheOf,
  });
  const statuses = new StatusWriter({ api: fenced, resource: widgets, manager: 'test-status' });
  const reconciled = new Set<string>();
  const controller = new Controller({
    name: 'widget',
    timing,
    metrics,
    log,
    reconcile: async (key, { signal }) => {
      const widget = stores.get(widgets)?.find(key);
      if (widget === undefined) return undefined;
      await applier.apply(widget, childOf(widget), signal);
      await statuses.write(widget, { observedGeneration: widget.metadata.generation }, signal);
      reconciled.add(key);
      return { requeueAfterMs: 300_000 };
    },
  });
  stores.get(widgets)?.subscribe(({ key, type }) => {
    controller.queue.add(key, type === 'updated' ? priority.edit : priority.background);
  });
  stores.get(configMaps)?.subscribe(({ object }) => {
    const owner = object.metadata.ownerReferences?.[0];
    if (owner !== undefined) controller.queue.add(keyOf({ ...object.metadata, name: owner.name }));
  });
  const operator: Operator = {
    leader,
    controller,
    reconciled,
    start: async () => {
      for (const reflector of reflectors) reflector.start();
      await Promise.all(reflectors.map(({ synced }) => synced));
      leader.start();
      void leader.elected.then(() => controller.start());
      await advanceUntil(timing, `${identity} to lead`, () => leader.isLeading);
    },
    stop: async () => {
      const stopped = controller.stop(1_000).then(() => leader.stop());
      await Promise.all(reflectors.map((reflector) => reflector.stop()));
      await stopped;
      await api.close();
    },
  };
  operators.push(operator);
  return operator;
}

const isWrite = ({ method, target }: ReceivedRequest) => method !== 'GET' && target.plural !== leases.plural;
const writes = () => server.requests.filter(isWrite);

/** Whether every child and status is as desired. */
function isConverged(): boolean {
  const maps = new Map(server.state.list(at(configMaps)).map((each) => [each.metadata.name, each['data']]));
  return server.state.list(at(widgets)).every((widget) => {
    const desired = JSON.stringify(childOf(widget).object['data']);
    const status = JSON.stringify({ observedGeneration: widget.metadata.generation });
    const isStated = JSON.stringify(widget['status']) === status;
    return JSON.stringify(maps.get(widget.metadata.name)) === desired && isStated;
  });
}

test('in steady state ten minutes cause no writes and only calls for the lease and the watches', async () => {
  for (let count = 0; count < COUNT; count += 1)
    put(server.state, widgets, make(widgets, `w${count}`, { spec: { count } }));
  const one = startOperator('one');
  await one.start();
  await advanceUntil(timing, 'everything', isConverged);
  // one apply per child and one status
  expect(writes()).toHaveLength(2 * COUNT);
  await advanceUntil(timing, 'a quiet queue', () => one.controller.queue.depth === 0);
  server.requests.length = 0;
  one.reconciled.clear();
  const fromMs = timing.monotonicMs();
  const minutes = () => (timing.monotonicMs() - fromMs) / 60_000;
  let attempts = 0;
  const isOver = () => {
    attempts += 1;
    if (attempts % 300 === 0) for (const watch of server.watches) watch.bookmark();
    return minutes() >= 10;
  };
  await advanceUntil(timing, 'ten minutes', isOver, 200);
  expect(writes()).toEqual([]);
  expect(one.reconciled.size).toBe(COUNT);
  const renewals = server.requests.filter(({ method }) => method === 'PUT').length;
  expect(renewals / minutes()).toBeLessThanOrEqual(30);
  expect(server.requests.length - renewals).toBeLessThanOrEqual(10);
}, 60_000);

test('a new process reconciles everything without a write', async () => {
  for (let count = 0; count < COUNT; count += 1)
    put(server.state, widgets, make(widgets, `w${count}`, { spec: { count } }));
  const one = startOperator('one');
  await one.start();
  await advanceUntil(timing, 'everything', isConverged);
  await one.stop();
  server.requests.length = 0;
  const two = startOperator('two');
  await two.start();
  await advanceUntil(timing, 'every key', () => two.reconciled.size === COUNT);
  expect(writes()).toEqual([]);
  // lists and watches of two resources, and the lease
  expect(server.requests.filter(({ method }) => method === 'GET').length).toBeLessThanOrEqual(10);
}, 60_000);

test('all edits converge after faults of every kind, with bounded retries', async () => {
  const one = startOperator('one');
  await one.start();
  let calls = 0;
  server.intercept = ({ target, isWatch }) => {
    if (target.plural === leases.plural) return undefined;
    calls += 1;
    if (isWatch) return undefined;
    const faults = {
      3: { status: 500 },
      7: { status: 429, headers: { 'retry-after': '0' } },
      11: 'reset-after',
      15: { status: 409, reason: 'Conflict' },
      18: 'reset',
    } as const;
    return Object.entries(faults).find(([place]) => calls % 20 === Number(place))?.[1];
  };
  for (let round = 0; round < 10; round += 1) {
    for (let count = 0; count < 20; count += 1) {
      put(server.state, widgets, make(widgets, `w${count}`, { spec: { round, count } }));
    }
    await timing.advance(200);
    [...server.watches].at(round % 2)?.break(round % 3 === 0 ? 'truncate' : 'reset');
  }
  server.intercept = () => undefined;
  const fromMs = timing.monotonicMs();
  await advanceUntil(timing, 'everything', isConverged);
  expect(timing.monotonicMs() - fromMs).toBeLessThan(60_000);
  expect(calls).toBeLessThan(5 * 10 * 20 * 3);
  expect(one.leader.isLeading).toBe(true);
}, 60_000);
