import { beforeAll, describe, expect, test } from 'vitest';
import { explainFailures } from '../diagnosis.ts';
import { ensureSamples } from '../installed.ts';
import { apply, eventually, kubectl, must } from '../kubectl.ts';
import { besideServer, ensureManagerObjects } from './controller-manager.ts';
import { identitiesOf } from './identity-of-pod.ts';
import { allServed, ensureInstalled, idOf, members, namespace, services } from './installed-with-spire.ts';
import { fileOf, system } from './objects.ts';
import { ensureSpire, grantsOf, showEntries } from './running-spire.ts';

const elsewhere = 'chancery-elsewhere';

beforeAll(async () => {
  await ensureManagerObjects();
  await ensureSpire(besideServer);
  await ensureInstalled(true);
  await ensureSamples(120, namespace);
}, 500_000);

explainFailures(namespace);
explainFailures(system);

const clients = [...services, ...members.map((name) => `validator-${name}`)];

/** Registration entries of a client, one per pod. */
const registered = async () => new Set((await showEntries()).map(({ spiffe_id }) => spiffe_id.path));

describe('identities by the controller manager', () => {
  test('are registered by the two ClusterSPIFFEIDs of the chart, and are served', async () => {
    // The controller manager registers pods one after the other.
    await eventually(async () => {
      const paths = await registered();
      for (const client of clients) expect(paths).toContain(`/service/${client}`);
    });
    for (const [client, { id }] of await allServed()) expect(id).toBe(idOf(client));
  });

  test('are registered for the same pods by spire/cluster-spiffe-ids.yaml', async () => {
    const manifest = fileOf('cluster-spiffe-ids.yaml');
    const byChart = grantsOf(await showEntries());
    await kubectl('delete', 'clusterspiffeids', '--all');
    await must('kubectl', ['apply', '-f', '-'], { input: manifest });
    await eventually(async () => expect(grantsOf(await showEntries())).toEqual(byChart));
  });

  test('are not given to a pod with the label but another ServiceAccount, namespace or name', async () => {
    const account = {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'service-wallet', namespace: elsewhere },
    };
    await apply(elsewhere, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: elsewhere } }, account);
    const labels = { 'chancery.dev/client-id': 'service-wallet' };
    const seat = { 'chancery.dev/validator-set': 'main', 'apps.kubernetes.io/pod-index': '0' };
    const asking = [
      { namespace, name: 'asks-label', serviceAccount: 'default', labels },
      { namespace: elsewhere, name: 'asks-wallet', serviceAccount: 'service-wallet', labels },
      { namespace, name: 'other-0', serviceAccount: 'validator-main', labels: seat },
    ];
    for (const one of asking) expect(await identitiesOf({ ...one, isPatient: true })).toEqual([]);
    const wallet = {
      namespace,
      name: 'asks-wallet',
      serviceAccount: 'service-wallet',
      labels,
      isPatient: true,
    };
    expect(await identitiesOf(wallet)).toEqual([idOf('service-wallet')]);
  });
});
