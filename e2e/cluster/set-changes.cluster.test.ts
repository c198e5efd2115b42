import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { waitConfirmed } from '../harness/journey.ts';
import { createOutsideKey, signSubmission } from '../harness/outside.ts';
import { setStatus } from '../harness/validation.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace } from './installed.ts';
import { type ApiServer, apply, kubectl, openApiServer } from './kubectl.ts';
import { type Ledger, openLedger, proposerOf } from './ledger-under-load.ts';
import { byAge, changed, follow, type Pod, type RunningSet, runningSet, within } from './running-set.ts';
import { fillVolume, makeSmallVolume, type SmallVolume } from './small-volume.ts';
import { imageOf, nextVersion, thisVersion } from './versions.ts';

/** A separate set with two registers, of which one is deleted, and with a small volume for one member. */

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const print = (text: string) => void process.stdout.write(`${text}\n`);
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
const resources = (cpu: string) => ({
  requests: { cpu, memory: '96Mi' },
  limits: { memory: '512Mi' },
});
const object = (kind: string, name: string, spec: object) => ({
  apiVersion: 'chancery.dev/v1alpha1',
  kind,
  metadata: { name },
  spec,
});
const register = (name: string) =>
  object('Register', name, {
    title: name,
    tenantRef: { name: 'acme' },
    validatorSetRef: { name: 'disks' },
    deletionPolicy: 'Tombstone',
  });
const summary = z.object({ height: z.number() });
const waiting = ({ status }: Pod) => status.containerStatuses?.[0]?.restartCount ?? 0;

let server: ApiServer;
let set: RunningSet;
let ledger: Ledger;
let small: SmallVolume | undefined;

beforeAll(async () => {
  await ensureInstalled();
  await ensureSamples(90);
  server = await openApiServer();
  set = runningSet(server, 'disks');
  small = await makeSmallVolume({ namespace, name: 'data-disks-3' });
  const spec = { version: thisVersion, resources: resources('30m'), update: { minReadySeconds: 2 } };
  await apply(namespace, object('ValidatorSet', 'disks', spec), register('kept'), register('scratch'));
  await look('wait', '--for=condition=Ready', 'vset/disks', 'reg/kept', 'reg/scratch', '--timeout=120s');
  ledger = await openLedger('kept');
}, 480_000);

afterAll(async () => {
  await look('delete', 'reg/kept', 'reg/scratch', 'vset/disks', '--ignore-not-found', '--timeout=90s');
  await within('the pods to go', 60_000, async () => (await set.pods()).length === 0);
  await look('delete', 'pvc', '-l', 'chancery.dev/validator-set=disks', '--timeout=30s');
  await kubectl('delete', 'pv', 'small-data-disks-3', '--ignore-not-found', '--wait=false');
  small?.remove();
  await server?.stop();
}, 240_000);

explainFailures(namespace);

/** Submits a transaction and waits until it is sealed. */
async function sealOne(): Promise<void> {
  const { api, token, registerId } = ledger;
  const json = signSubmission(createOutsideKey(), { registerId, payload: { at: Date.now() } });
  await api.expect(200, 'POST', '/api/v1/transactions/validate', { token, json });
  await waitConfirmed(api, token, registerId, json.TransactionId);
}

async function heightOf({ api, token, registerId }: Ledger): Promise<number> {
  return summary.parse((await api.expect(200, 'GET', `/api/registers/${registerId}`, { token })).body).height;
}

/** Waits until every member has every docket. */
async function membersLevelled(): Promise<void> {
  const height = await heightOf(ledger);
  let seen = '';
  await within('every member to have every docket', 30_000, async () => {
    const { members } = await setStatus(ledger.api, ledger.root, ledger.registerId);
    seen = JSON.stringify(members);
    return members.every(({ lastDocketNumber }) => lastDocketNumber === height - 1);
  }).catch((cause: unknown) => {
    throw new Error(`the register has ${height} dockets, its members say ${seen}`, { cause });
  });
}

async function resized(size: string): Promise<void> {
  const tookMs = await within(`volumes to ask for ${size}`, 10_000, async () => {
    const claims = await set.claims();
    return claims.length === 4 && claims.every(({ spec }) => spec.resources.requests.storage === size);
  });
  print(`all claims ask for ${size} after ${seconds(tookMs)}`);
}

describe('after a register of the set was deleted', () => {
  beforeAll(async () => {
    const registerId = await look('get', 'reg/scratch', '-o', 'jsonpath={.status.registerId}');
    await look('delete', 'reg/scratch', '--timeout=30s');
    await within('the members to stop it', 20_000, async () => {
      const { members } = await setStatus(ledger.api, ledger.root, registerId);
      return members.every(({ status }) => status === 'Stopped');
    });
    await set.settled(30_000);
  }, 120_000);

  test('size, version and resources in one edit: volumes are expanded at once, members are replaced one by one, the proposer last', async () => {
    const before = await set.uids();
    const proposer = await proposerOf(ledger);
    await set.patch({ storage: { size: '2Gi' }, version: nextVersion, resources: resources('40m') });
    await resized('2Gi');
    const startedAt = performance.now();
    const { mostAway, away, doubts } = await follow(set, 'the roll', {
      deadlineMs: 240_000,
      until: async () =>
        changed(before, await set.uids()).length === 4 && (await set.condition('Ready'))?.status === 'True',
    });
    print(`all changed after ${seconds(performance.now() - startedAt)}`);
    expect([mostAway, [...doubts]], away.join('; ')).toEqual([1, []]);
    const pods = await set.pods();
    for (const { spec } of pods)
      expect(spec.containers[0]).toMatchObject({
        image: imageOf('validator', nextVersion),
        resources: resources('40m'),
      });
    expect(`validator-${byAge(pods).at(-1)}`).toBe(proposer);
    const template = 'jsonpath={.spec.volumeClaimTemplates[0].spec.resources.requests.storage}';
    expect(await look('get', 'statefulset/disks', '-o', template)).toBe('2Gi');
    await sealOne();
  }, 300_000);
});

test('a member with a full volume is reported, and its volume is expanded in any state', async ({ skip }) => {
  if (small === undefined) return skip('no small volume');
  await fillVolume(namespace, 'disks-3');
  await within('the member to be missed', 30_000, async () => {
    await sealOne();
    const degraded = await set.condition('Degraded');
    return degraded?.status === 'True' && /disks-3: The volume of the log is full/.test(degraded.message);
  });
  expect((await set.condition('QuorumHealthy'))?.status).toBe('True');
  await set.patch({ storage: { size: '3Gi' }, update: { strategy: 'OnDelete' } });
  await resized('3Gi');
  await within('the larger volume', 30_000, async () => {
    const claims = await set.claims();
    return claims.every(({ status }) => status.capacity?.storage === '3Gi');
  });
  small.grow();
  await within(
    'the member to go on',
    60_000,
    async () => (await set.condition('Degraded'))?.status === 'False',
  );
  await sealOne();
  await membersLevelled();
}, 240_000);

/** Stops the set and expects its volumes to stay. */
async function suspend(what: string): Promise<void> {
  const uidsOfClaims = async () => (await set.claims()).map(({ metadata }) => metadata.uid).sort();
  const before = await uidsOfClaims();
  await set.patch({ suspend: true });
  const tookMs = await within('every member to stop', 60_000, async () => {
    const isSuspended = (await set.condition('Ready'))?.reason === 'Suspended';
    return isSuspended && (await set.pods()).length === 0;
  });
  print(`${what} stopped after ${seconds(tookMs)}`);
  expect(await uidsOfClaims()).toEqual(before);
  expect(before).toHaveLength(4);
}

async function resume(spec: object): Promise<void> {
  const height = await heightOf(ledger);
  await set.patch({ suspend: false, ...spec });
  await set.settled(120_000);
  expect(await heightOf(ledger)).toBe(height);
  await membersLevelled();
  await sealOne();
  expect(await heightOf(ledger)).toBe(height + 1);
}

describe('suspended and resumed', () => {
  test('a healthy set resumes at its height', async () => {
    await suspend('a set that is well');
    await resume({ update: { strategy: 'QuorumAware' } });
  }, 240_000);

  test('a set whose members all crash is suspended too, and resumes at its height', async () => {
    await set.patch({ image: imageOf('gateway', thisVersion), update: { strategy: 'OnDelete' } });
    await look('delete', 'pods', '-l', 'chancery.dev/validator-set=disks', '--wait=false');
    await within('all members to crash', 90_000, async () => {
      const restarts = (await set.pods()).map(waiting);
      return restarts.length === 4 && restarts.every((count) => count > 0);
    });
    await suspend('a set whose members crash');
    await resume({ image: null, update: { strategy: 'QuorumAware' } });
  }, 300_000);
});
