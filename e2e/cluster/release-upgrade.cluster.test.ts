import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ApiClients } from './callers.ts';
import { install } from './chart.ts';
import { imageNames, importAs, loadCommand } from './images.ts';
import { ensureInstalled, namespace, release } from './installed.ts';
import { kubectl } from './kubectl.ts';
import {
  docketCount,
  expectNothingLost,
  type Ledger,
  longestPauseMs,
  openLedger,
} from './ledger-under-load.ts';
import { useMainSet } from './main-set.ts';
import { changed, during, within } from './running-set.ts';
import { nextVersion, tagsOfServers, thisVersion } from './versions.ts';

/**
 * An upgrade of all images of this project to another tag, while clients call. PostgreSQL and NATS have separate tags and
 * are not restarted.
 */

/** Signing, storage and token services are replaced at the same time, also on two cores. */
const pauseBoundMs = 30_000;
const isServer = (name: string): boolean => Object.hasOwn(tagsOfServers, name);
const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);

/** Running images with their tags, by name. */
async function runningTags(): Promise<Readonly<Record<string, string>>> {
  const path = 'jsonpath={range .items[*]}{.spec.containers[0].image}{"\\n"}{end}';
  const found = await look('get', 'pods', '-l', 'app.kubernetes.io/part-of=chancery', '-o', path);
  const tags: Record<string, Set<string>> = {};
  for (const image of found.trim().split('\n')) {
    const [name = '', tag = ''] = image.slice(image.lastIndexOf('/') + 1).split(':');
    tags[name] = (tags[name] ?? new Set()).add(tag);
  }
  return Object.fromEntries(Object.entries(tags).map(([name, all]) => [name, [...all].join(' ')]));
}

/** The images of a release with one version everywhere. */
const allAt = (version: string) =>
  Object.fromEntries(imageNames().map((name) => [name, tagsOfServers[name] ?? version]));

/** Pods of PostgreSQL and NATS with their restarts. */
const podsOfServers = (): Promise<string> =>
  look(
    'get',
    'pods',
    '-l',
    'app.kubernetes.io/name in (postgres, nats)',
    '--sort-by=.metadata.name',
    '-o',
    'custom-columns=NAME:.metadata.name,UID:.metadata.uid,RESTARTS:.status.containerStatuses[0].restartCount',
  );

async function leader(): Promise<string> {
  const holder = await look('get', 'lease/chancery-operator', '-o', 'jsonpath={.spec.holderIdentity}');
  return holder.split('_')[0] ?? '';
}

// long form: it rolls out the whole installation twice
describe.runIf(process.env['CHANCERY_TEST_LENGTH'] === 'full')('a release under another tag', () => {
  const main = useMainSet();
  let ledger: Ledger;
  let organizationId: string;

  beforeAll(async () => {
    const command = loadCommand();
    if (command !== undefined)
      await importAs(
        nextVersion,
        command,
        imageNames().filter((name) => !isServer(name)),
      );
    // it follows the version of the installation
    await main.set.patch({ version: null, update: { minReadySeconds: 2 } });
    await main.set.settled(240_000);
    ledger = await openLedger('invoices');
    organizationId = await look('get', 'ten/acme', '-o', 'jsonpath={.status.organizationId}');
  }, 600_000);
  afterAll(async () => {
    await ensureInstalled();
    await main.set.settled(240_000);
  }, 480_000);

  test.each([
    ['a later', nextVersion],
    ['the former', thisVersion],
  ])(
    'is rolled to %s tag without a failed call, and the set keeps its quorum',
    async (_, version) => {
      const { set } = main;
      const [before, former, from] = [await set.uids(), await leader(), await docketCount(ledger)];
      const servers = await podsOfServers();
      const callers = new ApiClients(ledger, organizationId);
      let tookMs = 0;
      const { mostAway, away, doubts } = await during(set, 420_000, async () => {
        const servicesMs = await install({ ...release, set: [`image.tag=${version}`] }, 240_000);
        tookMs =
          servicesMs +
          (await within('every member to be replaced', 180_000, async () => {
            const isReady = (await set.condition('Ready'))?.status === 'True';
            return isReady && changed(before, await set.uids()).length === 4;
          }));
        await within('the former pods to go', 60_000, async () => {
          expect(await runningTags()).toEqual(allAt(version));
          return true;
        });
      }).finally(() => callers.stop());
      const { transactions } = await expectNothingLost(ledger, { ...callers, unexpected: [] });
      const pauseMs = await longestPauseMs(ledger, from);
      process.stdout.write(
        `${version}: rolled in ${(tookMs / 1_000).toFixed(0)} s, ${callers.answered} calls answered, ${callers.refusedConnections} connections tried again at the ingress, ${callers.repeated} transactions given once more, ${callers.accepted.size} of ${transactions} transactions accepted meanwhile, longest pause ${pauseMs} ms, doubts: ${[...doubts].join('; ') || 'none'}\n`,
      );
      expect(callers.unexpected).toEqual([]);
      // at most one per replaced member
      expect(callers.repeated).toBeLessThanOrEqual(4);
      expect([mostAway, [...doubts]], away.join('; ')).toEqual([1, []]);
      expect(pauseMs).toBeLessThan(pauseBoundMs);
      expect(await leader()).not.toBe(former);
      expect(await podsOfServers()).toBe(servers);
    },
    600_000,
  );
});
