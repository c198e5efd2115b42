import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemTiming } from '#kit/clock/timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { FINALIZER } from '../../api/names.ts';
import { guarded } from '../../kube/api.ts';
import { NotLeader } from '../../kube/errors.ts';
import { HttpApi } from '../../kube/http.ts';
import { namespaces } from '../../kube/kinds.ts';
import type { Resource } from '../../kube/resource.ts';
import { type ApiServer, startApiServer } from '../../kube/testing/api-server.ts';
import { at, credentialsFor, make, put, testMetrics } from '../../kube/testing/fixtures.ts';
import { registers, tenants, validatorSets } from '../reconciler/resources.ts';
import { releaseOnNamespaceDeletion } from './namespace-deletion.ts';

const timing = systemTiming();
const { log } = testRuntime('operator', { level: 'silent' });
const main = { validatorSetRef: { name: 'main' }, tenantRef: { name: 'acme' }, title: 'A register' };

let server: ApiServer;
let api: HttpApi;

beforeEach(async () => {
  server = await startApiServer();
  api = new HttpApi({ credentials: credentialsFor(server.url), timing, metrics: testMetrics().metrics });
  store(validatorSets, 'main', {});
  store(tenants, 'acme', { displayName: 'Acme', subdomain: 'acme' });
  store(registers, 'kept', main);
  store(registers, 'purged', { ...main, deletionPolicy: 'Purge' });
});

afterEach(async () => {
  await api.close();
  await server.close();
});

function store(resource: Resource, name: string, spec: object): void {
  put(server.state, resource, make(resource, name, { spec }, { finalizers: [FINALIZER] }));
}

function storeNamespace(metadata: object): void {
  const { group, version, plural } = namespaces;
  const target = { group, version, plural, name: 'acme' };
  server.state.create(target, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'acme', ...metadata },
  });
}

const isHeld = (resource: Resource, name: string): boolean =>
  server.state.get(at(resource, name)).metadata.finalizers?.includes(FINALIZER) === true;
const leave = () => releaseOnNamespaceDeletion({ api, timing, log, namespace: 'acme' });
const going = { deletionTimestamp: '2026-01-01T00:00:00Z' };

test('without a deletion of the namespace nothing is changed, and it costs one call', async () => {
  storeNamespace({});
  await leave();
  expect(server.requests.map(({ method }) => method)).toEqual(['GET']);
});

test('objects that keep their data are released; the others stay with a remedy in the condition', async () => {
  storeNamespace(going);
  await leave();
  expect([
    isHeld(validatorSets, 'main'),
    isHeld(tenants, 'acme'),
    isHeld(registers, 'kept'),
    isHeld(registers, 'purged'),
  ]).toEqual([false, false, false, true]);
  const { metadata, status } = server.state.get(at(registers, 'purged'));
  const message = expect.stringContaining(
    `register/purged -n acme chancery.dev/force-delete=${metadata.uid}`,
  );
  expect(status).toMatchObject({
    conditions: [
      { type: 'Ready', status: 'False', reason: 'DeletionBlocked', message },
      { type: 'Stalled', status: 'True', reason: 'DeletionBlocked' },
    ],
  });
});

test('an object with a conflicting write is tried again', async () => {
  storeNamespace(going);
  let conflicts = 0;
  server.intercept = ({ method, target }) => {
    if (method !== 'PATCH' || target.name !== 'kept' || conflicts === 2) return undefined;
    conflicts += 1;
    return { status: 409, reason: 'Conflict' };
  };
  await leave();
  expect(isHeld(registers, 'kept')).toBe(false);
});

test('a process that does not lead removes no finalizer', async () => {
  storeNamespace(going);
  const fenced = guarded(api, () => {
    throw new NotLeader();
  });
  await expect(releaseOnNamespaceDeletion({ api: fenced, timing, log, namespace: 'acme' })).rejects.toThrow(
    NotLeader,
  );
  expect(isHeld(registers, 'kept')).toBe(true);
});
