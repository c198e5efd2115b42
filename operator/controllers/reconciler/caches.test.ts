import { afterEach, expect, test } from 'vitest';
import { manualTiming } from '#kit/testing/manual-timing.ts';
import { testRuntime } from '#kit/testing/runtime.ts';
import { configMaps, services } from '../../kube/kinds.ts';
import { ClusterState, StatusError } from '../../kube/testing/cluster-state.ts';
import { directApi } from '../../kube/testing/direct-api.ts';
import { testMetrics } from '../../kube/testing/fixtures.ts';
import { Caches } from './caches.ts';

const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

test('a process is ready while all kinds are listed and their watches are not stale', async () => {
  const timing = manualTiming();
  const api = directApi(new ClusterState(), timing);
  const { metrics } = testMetrics();
  const { log } = testRuntime('operator', { level: 'silent' });
  const watched = [configMaps, services].map((resource) => ({ resource }));
  const caches = new Caches({ api, timing, metrics, log, namespaces: ['acme'], watched });
  ends.push(() => caches.stop());
  const { check } = caches.readiness;
  expect(check).toThrow('configmaps are not listed yet');
  caches.start();
  await timing.advance(1_000);
  expect(check).not.toThrow();

  for (const watch of api.watches) watch.break();
  api.delivery = () => ({ refused: new StatusError(503, 'ServiceUnavailable') });
  await timing.advance(170_000);
  expect(check).not.toThrow();
  await timing.advance(20_000);
  expect(check).toThrow(/no data about configmaps for 1[89]\d s/);

  api.delivery = () => ({});
  await timing.advance(40_000);
  expect(check).not.toThrow();
});
