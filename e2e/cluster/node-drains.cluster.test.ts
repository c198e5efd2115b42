import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace } from './installed.ts';
import { type ApiServer, kubectl, openApiServer, run } from './kubectl.ts';
import { beginLoad, docketCount, expectNothingLost, type Ledger, openLedger } from './ledger-under-load.ts';
import { type Pod, type RunningSet, runningSet, within } from './running-set.ts';

/** Drains of each node of an installation with its own PostgreSQL, whose volume is bound to one of them. */

const settleMs = 240_000;

let server: ApiServer;
let set: RunningSet;
let ledger: Ledger;

beforeAll(async () => {
  await ensureInstalled();
  await ensureSamples(120);
  server = await openApiServer();
  set = runningSet(server, 'main');
  await set.settled(settleMs);
  ledger = await openLedger('invoices');
}, 480_000);

afterAll(() => server?.stop());

explainFailures(namespace);

const drained: string[] = [];
afterEach(async () => {
  for (const node of drained.splice(0)) await kubectl('uncordon', node);
});

const restarts = (pods: readonly Pod[]) =>
  pods.flatMap(({ metadata, status }) => {
    const count = (status.containerStatuses ?? []).reduce((sum, each) => sum + each.restartCount, 0);
    return count === 0 ? [] : [`${metadata.name}: ${count}`];
  });

/**
 * Evicts what may be evicted within 45 s. A volume of a member binds it to its node, so with two members on one node
 * the second one stays: no more than one may be away.
 */
async function drain(node: string): Promise<void> {
  drained.push(node);
  await run('kubectl', ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', '--timeout=45s'], {
    timeoutMs: 60_000,
  });
}

test('no validator restarts while a node is drained, and sealing continues after each drain', async () => {
  const names = await kubectl('get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}');
  const nodes = names.trim().split(' ');
  expect(nodes.length).toBeGreaterThan(2);
  const stateful = await kubectl('-n', namespace, 'get', 'statefulsets', '-o', 'name');
  expect(stateful, 'the installation has its own PostgreSQL').toMatch(/postgres/);
  const load = beginLoad(ledger, 5);
  try {
    for (const node of nodes) {
      const startedAt = performance.now();
      await drain(node);
      await kubectl('uncordon', node);
      await set.settled(settleMs);
      const before = await docketCount(ledger);
      await within('the register to seal', 60_000, async () => (await docketCount(ledger)) > before);
      expect(restarts(await set.pods())).toEqual([]);
      const seconds = Math.round((performance.now() - startedAt) / 1_000);
      process.stdout.write(`${node}: drained, and sealing again after ${seconds} s\n`);
    }
  } finally {
    await load.stop();
  }
  await expectNothingLost(ledger, load);
}, 1_200_000);
