import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { explainFailures } from '../diagnosis.ts';
import { ensureSamples } from '../installed.ts';
import { apply, eventually, kubectl } from '../kubectl.ts';
import { beginLoad, expectNothingLost, type Ledger, openLedger, verifyAll } from '../ledger-under-load.ts';
import { identitiesOf } from './identity-of-pod.ts';
import {
  allServed,
  ensureInstalled,
  idOf,
  members,
  namespace,
  restarts,
  type Served,
  services,
} from './installed-with-spire.ts';
import { system } from './objects.ts';
import {
  ensureEntries,
  ensureSpire,
  setTimeToLive,
  showEntries,
  whileAgentsAreAway,
} from './running-spire.ts';

const full = process.env['CHANCERY_TEST_LENGTH'] === 'full';
const elsewhere = 'chancery-elsewhere';
const perSecond = 20;

let ledger: Ledger;

beforeAll(async () => {
  await ensureSpire();
  await ensureEntries();
  await ensureInstalled(false);
}, 400_000);

afterAll(async () => {
  await kubectl('delete', 'namespace', elsewhere, '--ignore-not-found', '--wait=false');
});

explainFailures(namespace);
explainFailures(system);

const voted = z.object({
  consensusVotes: z.array(z.object({ validatorId: z.string(), approved: z.boolean() })),
});

describe('identities by registration entries', () => {
  test('are those of entries.json, as SPIRE shows them', async () => {
    const entries = await showEntries();
    const ids = entries.map(({ spiffe_id }) => `spiffe://${spiffe_id.trust_domain}${spiffe_id.path}`);
    const validators = members.map((name) => `validator-${name}`);
    for (const client of [...services, ...validators]) expect(ids).toContain(idOf(client));
  });

  test('make a tenant, a set of four and a register ready', async () => {
    const startedAt = performance.now();
    await ensureSamples(90, namespace);
    process.stdout.write(`samples ready after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n`);
  }, 120_000);

  test('are served by every TLS server, each its own', async () => {
    for (const [client, { id }] of await allServed()) expect(id).toBe(idOf(client));
  });

  test('allow four validators to vote for the genesis docket', async () => {
    ledger = await openLedger('invoices', namespace);
    const path = `/api/registers/${ledger.registerId}/dockets/0`;
    await eventually(async () => {
      const { body } = await ledger.api.expect(200, 'GET', path, { token: ledger.token });
      const { consensusVotes } = voted.parse(body);
      const names = consensusVotes.filter(({ approved }) => approved).map(({ validatorId }) => validatorId);
      expect(names.sort()).toEqual(members.map((name) => `validator-${name}`));
    });
  });
});

describe('a pod', () => {
  beforeAll(async () => {
    const of = (name: string) => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: elsewhere },
    });
    await apply(elsewhere, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: elsewhere } });
    await apply(elsewhere, of('service-wallet'), of('validator-main'));
  });

  test('with the ServiceAccount of a service has its identity, and no other', async () => {
    const asking = { namespace, name: 'asks-wallet', serviceAccount: 'service-wallet' };
    expect(await identitiesOf(asking)).toEqual([idOf('service-wallet')]);
  });

  test('with nothing but its label has none', async () => {
    const labels = { 'chancery.dev/client-id': 'service-wallet' };
    expect(await identitiesOf({ namespace, name: 'asks-label', serviceAccount: 'default', labels })).toEqual(
      [],
    );
  });

  test('with its ServiceAccount in another namespace has none', async () => {
    const labels = { 'chancery.dev/client-id': 'service-wallet' };
    const asking = { namespace: elsewhere, name: 'asks-wallet', serviceAccount: 'service-wallet', labels };
    expect(await identitiesOf(asking)).toEqual([]);
  });

  test('with the ServiceAccount of a set has none unless it has the name of a member', async () => {
    const labels = { 'chancery.dev/validator-set': 'main', 'apps.kubernetes.io/pod-index': '0' };
    const asking = { namespace, serviceAccount: 'validator-main' };
    for (const name of ['other-0', 'main-0-copy'])
      expect(await identitiesOf({ ...asking, name, labels })).toEqual([]);
    // without labels, because the operator would treat it as a surplus member
    expect(await identitiesOf({ ...asking, name: 'main-4' })).toEqual([]);
    const member = { namespace: elsewhere, name: 'main-0', serviceAccount: 'validator-main', labels };
    expect(await identitiesOf(member)).toEqual([]);
  });
});

/** Serial numbers of all served certificates during some time, by client id. */
async function watchServed(forMs: number): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const seen = new Map<string, Set<string>>();
  const until = Date.now() + forMs;
  while (Date.now() < until) {
    for (const [client, { serial }] of await allServed())
      seen.set(client, (seen.get(client) ?? new Set()).add(serial));
    await pause(5_000);
  }
  return seen;
}

/** Waits until every server has an SVID that the check accepts. */
async function allServe(check: (served: Served) => boolean): Promise<void> {
  await eventually(async () => {
    for (const [client, served] of await allServed())
      if (!check(served)) throw new Error(`${client} serves ${JSON.stringify(served)}`);
  });
}

/** Sends transactions during an action and expects no failed request. */
async function underLoad(happens: () => Promise<void>): Promise<void> {
  const before = await restarts();
  const load = beginLoad(ledger, perSecond);
  await happens().finally(() => load.stop());
  process.stdout.write(`${load.accepted.size} transactions, ${load.refused} refused for the time being\n`);
  expect([load.refused, load.unexpected]).toEqual([0, []]);
  await expectNothingLost(ledger, load);
  expect(await restarts()).toEqual(before);
}

const livesFor = (seconds: number) => (served: Served) => served.expiresAtMs < Date.now() + seconds * 1_000;

describe('identities under load', () => {
  test('of 60 s are rotated without a failed request', async () => {
    await setTimeToLive(60);
    await underLoad(async () => {
      const seen = await watchServed(full ? 180_000 : 75_000);
      const turns = [...seen].map(([client, serials]) => [client, serials.size] as const);
      process.stdout.write(`SVIDs served: ${JSON.stringify(turns)}\n`);
      for (const [client, count] of turns) expect(count, client).toBeGreaterThanOrEqual(full ? 5 : 3);
    });
  }, 400_000);

  test('stay valid without an agent, and are rotated when it is back', async () => {
    await setTimeToLive(3_600);
    await allServe((served) => !livesFor(600)(served));
    await underLoad(async () => {
      const held = await allServed();
      await whileAgentsAreAway(async () => {
        await pause(full ? 120_000 : 30_000);
        expect(await allServed()).toEqual(held);
      });
      await setTimeToLive(1_200);
      await allServe(livesFor(1_300));
    });
  }, 400_000);

  test('that expired without an agent are renewed without a restart', async () => {
    const before = await restarts();
    await setTimeToLive(60);
    await allServe(livesFor(61));
    await whileAgentsAreAway(async () => {
      const wallet = ['pod', '-l', 'chancery.dev/client-id=service-wallet'];
      const wait = ['wait', '--for=condition=Ready=false', ...wallet, '--timeout=90s'];
      await kubectl('-n', namespace, ...wait);
    });
    for (const label of ['client-id', 'validator-set']) {
      const wait = ['wait', '--for=condition=Ready', 'pod', '-l', `chancery.dev/${label}`, '--timeout=60s'];
      await kubectl('-n', namespace, ...wait);
    }
    expect(await restarts()).toEqual(before);
    await underLoad(() => pause(5_000));
    await setTimeToLive(3_600);
    await verifyAll(ledger);
  }, 600_000);
});
