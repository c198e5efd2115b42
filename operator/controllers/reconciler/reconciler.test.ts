import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { systemTiming } from '#kit/clock/timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { waitFor } from '#kit/testing/wait.ts';
import { annotations, FINALIZER } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { RequeueError } from '../../api/requeue-error.ts';
import { parseValidatorSet, type ValidatorSet } from '../../api/validator-set.ts';
import { EventRecorder, kubeEvents } from '../../kube/events.ts';
import { HttpApi } from '../../kube/http.ts';
import { configMaps, podMonitors, services } from '../../kube/kinds.ts';
import { isRecord, type KubeObject } from '../../kube/resource.ts';
import { type ApiServer, type ReceivedRequest, startApiServer } from '../../kube/testing/api-server.ts';
import { at, credentialsFor, make, put, testMetrics } from '../../kube/testing/fixtures.ts';
import { watchInstallations } from '../../platform/installations.ts';
import { installationMap, installationText } from '../../platform/testing/installation.fixture.ts';
import { Caches } from './caches.ts';
import type { KindHandler, ReconcileResult } from './kind.ts';
import { createReconciler, type Reconciler } from './reconciler.ts';
import { validatorSets, watched } from './resources.ts';

/** A reconciler of a test kind, with an API server on loopback. */

const fine: ReconcileResult = { outcome: { state: 'ready', reason: 'Reconciled', message: 'All is well' } };
const uid = '11111111-2222-4333-8444-555555555555';

let server: ApiServer;
let reconciler: Reconciler;
let ends: (() => Promise<void> | void)[];
let reconciled: number;
let reconcile: KindHandler<ValidatorSet>['reconcile'];
let finalize: NonNullable<KindHandler<ValidatorSet>['finalize']>;

beforeEach(async () => {
  server = await startApiServer();
  ends = [];
  reconciled = 0;
  reconcile = async () => fine;
  finalize = async () => ({ done: true });
});

afterEach(async () => {
  for (const end of ends.toReversed()) await end();
  await server.close();
});

async function run(resources = watched, timing = systemTiming()): Promise<void> {
  const { metrics } = testMetrics();
  const runtime = testRuntime('operator', { level: 'silent' });
  const rate = { perSecond: 10_000, burst: 10_000 };
  const api = new HttpApi({ credentials: credentialsFor(server.url), timing, metrics, rate });
  const caches = new Caches({
    api,
    timing,
    metrics,
    log: runtime.log,
    namespaces: ['acme'],
    watched: resources,
  });
  const reporting = { controller: 'test', instance: 'test' };
  const recorder = new EventRecorder({ api, timing, metrics, log: runtime.log, ...reporting });
  const installations = watchInstallations(caches.of(configMaps), 'acme');
  const dependencies = { runtime, timing, metrics, api, caches, recorder, installations };
  reconciler = createReconciler<ValidatorSet>(dependencies, {
    kind: 'ValidatorSet',
    resource: validatorSets,
    parse: parseValidatorSet,
    children: [services, podMonitors],
    reconcile: async (request) => {
      reconciled += 1;
      return reconcile(request);
    },
    finalize: (request) => finalize(request),
  });
  caches.start();
  reconciler.start();
  ends.push(
    () => api.close(),
    () => caches.stop(),
    () => recorder.stop(),
    () => reconciler.stop(1_000),
  );
}

function store(changes: Partial<KubeObject['metadata']> = {}, spec: object = {}): KubeObject {
  return put(
    server.state,
    validatorSets,
    make(validatorSets, 'main', { spec }, { finalizers: [FINALIZER], ...changes }),
  );
}

const live = () => server.state.get(at(validatorSets, 'main'));
const conditions = (): readonly Condition[] => {
  const { status } = live();
  return isRecord(status) && Array.isArray(status['conditions']) ? (status['conditions'] as Condition[]) : [];
};
const condition = (type: string) => conditions().find((each) => each.type === type);
const toSay = (reason: string) =>
  waitFor(() => condition('Ready')?.reason === reason, {
    what: `${reason}, not ${JSON.stringify(condition('Ready'))}`,
  });
const merge = (body: object) => server.state.merge(at(validatorSets, 'main'), body);
const install = () => put(server.state, configMaps, installationMap());

describe('a reconcile', () => {
  test('writes the status once; without a change the next one writes nothing', async () => {
    install();
    store();
    await run();
    await toSay('Reconciled');
    expect(live()['status']).toMatchObject({ observedGeneration: 1 });
    expect(conditions().map(({ type }) => type)).toEqual(['Ready']);
    await waitFor(() => server.state.list(at(kubeEvents)).length === 1);
    const { writes } = server.state;
    const before = reconciled;
    reconciler.controller.queue.add('acme/main');
    await waitFor(() => reconciled > before);
    await waitFor(() => reconciler.controller.queue.depth === 0);
    expect(server.state.writes).toBe(writes);
  });

  test('is left to another operator that the installation names', async () => {
    put(server.state, configMaps, installationMap({ ...installationText, operatorNamespace: 'platform' }));
    store();
    await run();
    await waitFor(() => reconciler.controller.queue.depth === 0);
    merge({ metadata: { annotations: { 'chancery.dev/reconcile-at': 'now' } } });
    await waitFor(() => reconciler.controller.queue.depth === 0);
    expect([reconciled, conditions()]).toEqual([0, []]);
    install();
    await toSay('Reconciled');
  });

  test('adds the finalizer first', async () => {
    install();
    store({ finalizers: ['example.org/other'] });
    await run();
    await toSay('Reconciled');
    expect(live().metadata.finalizers).toEqual(['example.org/other', FINALIZER]);
  });

  test('is triggered when an optional kind of children becomes unavailable', async () => {
    install();
    store();
    await run();
    await toSay('Reconciled');
    const ofMonitors = (target: { plural: string }) => target.plural === podMonitors.plural;
    await waitFor(() => [...server.watches].some(({ arrival }) => ofMonitors(arrival.target)));
    await waitFor(() => reconciler.controller.queue.depth === 0);
    const before = reconciled;
    server.intercept = ({ target }) => (ofMonitors(target) ? { status: 404, reason: 'NotFound' } : undefined);
    for (const watch of server.watches) if (ofMonitors(watch.arrival.target)) watch.break('end');
    await waitFor(() => reconciled > before);
    await toSay('Reconciled');
  });

  test('reports a changed reason of Ready as one event', async () => {
    install();
    store();
    await run();
    await toSay('Reconciled');
    await waitFor(() => server.state.list(at(kubeEvents)).length === 1);
    expect(server.state.list(at(kubeEvents))[0]).toMatchObject({ reason: 'Reconciled', type: 'Normal' });
  });
});

describe('an error of a reconcile becomes a condition:', () => {
  test.each([
    [
      new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'tenant cannot be reached'),
      'DependencyNotReady',
      'Reconciling',
    ],
    [new AppError('conflict', 'ANY', 'the service refuses'), 'ProgressingWithRetry', 'Reconciling'],
    [
      new RequeueError('InvalidReference', 'no such set', { state: 'stalled', retryAfterMs: 1_000 }),
      'InvalidReference',
      'Stalled',
    ],
    [new TypeError('undefined is not a function'), 'ProgressingWithRetry', 'Reconciling'],
  ] as const)('%s', async (error, reason, type) => {
    install();
    store();
    reconcile = async () => {
      throw error;
    };
    await run();
    await toSay(reason);
    expect(condition('Ready')?.status).toBe('False');
    expect(condition(type)?.status).toBe('True');
    reconcile = async () => fine;
    await toSay('Reconciled');
    expect(condition(type)).toBeUndefined();
  });

  test('a failed action, without the loss of the status that was observed; it is retried as a failure', async () => {
    install();
    store();
    const failures: number[] = [];
    reconcile = async (request) => {
      failures.push(request.failures);
      const failure = new AppError('conflict', 'ANY', 'the service refuses');
      const outcome = { state: 'reconciling', reason: 'ProgressingWithRetry', message: 'refused' } as const;
      return { outcome, status: { size: 4 }, failure, requeueAfterMs: 3_600_000 };
    };
    await run();
    await waitFor(() => failures.length > 1);
    const [first = 0, second] = failures;
    expect(second).toBe(first + 1);
    expect(live()['status']).toMatchObject({ size: 4, observedGeneration: 1 });
    expect(condition('Ready')).toMatchObject({ status: 'False', message: 'refused' });
  });

  test('a verb that the role does not allow, with its name', async () => {
    install();
    store();
    server.intercept = ({ method, target }: ReceivedRequest) =>
      method === 'PATCH' && target.plural === 'services' ? { status: 403, reason: 'Forbidden' } : undefined;
    const child = { resource: services, object: make(services, 'main', { spec: {} }) };
    reconcile = async ({ applyChildren }) => {
      await applyChildren([child]);
      return fine;
    };
    await run();
    await toSay('ProgressingWithRetry');
    expect(condition('Ready')?.message).toContain('patch services acme/main');
  });

  test('a forbidden status write, in an event', async () => {
    install();
    store();
    server.intercept = ({ target }: ReceivedRequest) =>
      target.subresource === 'status' ? { status: 403, reason: 'Forbidden' } : undefined;
    await run();
    const events = () => server.state.list(at(kubeEvents));
    await waitFor(() => events().length > 0);
    expect(events()[0]).toMatchObject({
      type: 'Warning',
      note: expect.stringContaining('does not allow patch validatorsets.chancery.dev/status acme/main'),
    });
    server.intercept = () => undefined;
    await toSay('Reconciled');
  });

  test('a kind that may not be listed; other kinds are not affected', async () => {
    install();
    store();
    server.intercept = ({ method, target }: ReceivedRequest) =>
      method === 'GET' && target.plural === 'services' ? { status: 403, reason: 'Forbidden' } : undefined;
    await run();
    await toSay('ProgressingWithRetry');
    expect(condition('Ready')?.message).toContain('list services');
    expect(reconciled).toBe(0);
  });
});

test('while another manager keeps changing a child, the condition names it and the rest of the status is updated', async () => {
  install();
  store();
  const child = (clusterIP: string) => make(services, 'main', { spec: { clusterIP } });
  const isPutBack = () => JSON.stringify(server.state.get(at(services, 'main'))['spec']).includes('None');
  let isUncontested: boolean | undefined;
  reconcile = async ({ applyChildren }) => {
    ({ isUncontested } = await applyChildren([{ resource: services, object: child('None') }]));
    return { ...fine, status: { replicas: reconciled } };
  };
  await run();
  await toSay('Reconciled');
  expect(isUncontested).toBe(true);
  await waitFor(() => {
    if (isPutBack()) server.state.apply(at(services, 'main'), child('10.0.0.9'), 'rival');
    return condition('Ready')?.reason === 'ReconcileThrottled';
  });
  expect(isUncontested).toBe(false);
  expect(condition('Ready')?.message).toBe(
    'Service acme/main: fields of the operator are changed repeatedly by rival; stop that writer',
  );
  expect(condition('Stalled')?.status).toBe('True');
  const before = reconciled;
  reconciler.controller.queue.add('acme/main');
  await waitFor(() => (live()['status'] as { replicas: number }).replicas > before);
  expect(condition('Ready')?.reason).toBe('ReconcileThrottled');
});

describe('a reconcile changes nothing', () => {
  test('without a description of the installation, until it is created', async () => {
    store();
    await run();
    await toSay('InstallationConfigInvalid');
    expect(reconciled).toBe(0);
    install();
    await toSay('Reconciled');
  });

  test('while it is paused; observedGeneration is not updated', async () => {
    install();
    store();
    await run();
    await toSay('Reconciled');
    const at1 = condition('Ready')?.lastTransitionTime;
    merge({ metadata: { annotations: { [annotations.paused]: 'true' } }, spec: { replicas: 7 } });
    await toSay('Paused');
    expect(condition('Ready')).toMatchObject({ status: 'True', lastTransitionTime: at1 });
    expect(live()['status']).toMatchObject({ observedGeneration: 1 });
    expect(live().metadata.generation).toBe(2);
  });
});

describe('deletion', () => {
  const remove = () => server.state.delete(at(validatorSets, 'main'), undefined);

  test('waits for the cleanup with a condition and ends when it is done', async () => {
    install();
    store();
    finalize = async () => ({ done: false, reason: 'InUse', message: 'Register ledger', retryAfterMs: 50 });
    await run();
    await toSay('Reconciled');
    remove();
    await toSay('InUse');
    finalize = async () => ({ done: true });
    await waitFor(() => server.state.list(at(validatorSets)).length === 0);
  });

  test('is blocked by an error', async () => {
    install();
    store();
    finalize = async () => {
      throw new AppError('unavailable', 'SERVICE_UNAVAILABLE', 'tenant is down');
    };
    await run();
    await toSay('Reconciled');
    remove();
    await toSay('DeletionBlocked');
    expect(condition('Ready')?.message).toBe('Cannot be deleted yet: tenant is down');
    expect(live().metadata.finalizers).toEqual([FINALIZER]);
  });

  test('reports a silent service before its timeout and ends when it answers', async () => {
    install();
    store();
    const answer = Promise.withResolvers<{ done: true }>();
    finalize = () => answer.promise;
    const real = systemTiming();
    await run(watched, { ...real, after: (ms, act) => real.after(ms / 20, act) });
    await toSay('Reconciled');
    remove();
    await toSay('DeletionBlocked');
    expect(condition('Ready')?.message).toBe('Cannot be deleted yet: the cleanup waits for a service');
    answer.resolve({ done: true });
    await waitFor(() => server.state.list(at(validatorSets)).length === 0);
  });

  test('is forced by the own uid only', async () => {
    install();
    store();
    finalize = async () => ({
      done: false,
      reason: 'InUse',
      message: 'Register ledger',
      retryAfterMs: 60_000,
    });
    await run();
    await toSay('Reconciled');
    merge({ metadata: { annotations: { [annotations.forceDelete]: uid } } });
    remove();
    await toSay('InUse');
    const own = live().metadata.uid ?? '';
    merge({ metadata: { annotations: { [annotations.forceDelete]: own } } });
    await waitFor(() => server.state.list(at(validatorSets)).length === 0);
  });
});
