import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { waitFor } from '#kit/testing/wait.ts';
import { type Api, createApi } from '../harness/api.ts';
import { createPerson } from '../harness/governance.ts';
import { signIn } from '../harness/journey.ts';
import { readState } from '../harness/system.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace, openGateway } from './installed.ts';
import { apply, kubectl, run } from './kubectl.ts';

/** A register and its set, edited with kubectl. The register needs three validators, and the set has three. */

const apiVersion = 'chancery.dev/v1alpha1';
const set = {
  apiVersion,
  kind: 'ValidatorSet',
  metadata: { name: 'small' },
  spec: {
    replicas: 3,
    storage: { size: '1Gi' },
    resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
  },
};
const register = {
  apiVersion,
  kind: 'Register',
  metadata: { name: 'limited' },
  spec: {
    title: 'Limited',
    tenantRef: { name: 'acme' },
    validatorSetRef: { name: 'small' },
    policy: { validators: { minValidators: 3 }, consensus: { maxTransactionsPerDocket: 100 } },
  },
};
const object = z.object({
  metadata: z.object({ generation: z.number() }),
  status: z.object({
    observedGeneration: z.number(),
    registerId: z.string().optional(),
    policyVersion: z.number().optional(),
    validators: z.object({ size: z.number() }).optional(),
    conditions: z.array(
      z.object({ type: z.string(), status: z.string(), reason: z.string(), message: z.string() }),
    ),
  }),
});
const policy = z.object({
  policy: z.object({ consensus: z.object({ maxTransactionsPerDocket: z.number() }) }),
});

const docket = z.object({ docketNumber: z.number(), hash: z.string() });

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const read = async (of: string) => object.parse(JSON.parse(await look('get', of, '-o', 'json')));
const members = async () =>
  (await look('get', 'pods', '-l', 'chancery.dev/validator-set=small', '-o', 'name')).trim().split('\n');
const isReady = async (of: string) => {
  const { metadata, status } = await read(of);
  const ready = status.conditions.find(({ type }) => type === 'Ready');
  return status.observedGeneration === metadata.generation && ready?.status === 'True';
};
const within = <T>(what: string, deadlineMs: number, check: () => Promise<T>) =>
  waitFor(check, { what, deadlineMs, everyMs: 300 });
const bothReady = () =>
  within('both to be ready', 90_000, async () => (await isReady('vset/small')) && isReady('reg/limited'));

let api: Api;
let token: string;
let registerId: string;

beforeAll(async () => {
  await ensureInstalled();
  await ensureSamples(90);
  await apply(namespace, set, register);
  const door = await openGateway();
  api = createApi(door.url);
  const { access_token: root } = await signIn(api, readState(door.stateFile));
  const id = await look('get', 'ten/acme', '-o', 'jsonpath={.status.organizationId}');
  const organization = { id, subdomain: 'acme' };
  const name = `editor-${Date.now().toString(36)}`;
  token = (await createPerson(api, root, organization, { name, role: 'Administrator' })).token;
}, 360_000);

afterAll(async () => {
  await look('delete', 'reg/limited', 'vset/small', '--ignore-not-found', '--timeout=90s');
}, 120_000);

explainFailures(namespace);

test('both become ready', async () => {
  await bothReady();
  registerId = (await read('reg/limited')).status.registerId ?? '';
  expect(registerId).toMatch(/^[0-9a-f]{32}$/);
});

test('an edited policy is in force once PolicyInSync says so', async () => {
  const before = (await read('reg/limited')).status.policyVersion ?? 0;
  const change = { spec: { policy: { consensus: { maxTransactionsPerDocket: 50 } } } };
  await look('patch', 'reg/limited', '--type=merge', '-p', JSON.stringify(change));
  await bothReady();
  const { status } = await read('reg/limited');
  expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'PolicyInSync', status: 'True' }));
  expect(status.policyVersion).toBe(before + 1);
  const answer = await api.expect(200, 'GET', `/api/registers/${registerId}/policy`, { token });
  expect(policy.parse(answer.body).policy.consensus.maxTransactionsPerDocket).toBe(50);
});

test('development mode cannot be switched on later', async () => {
  const change = ['--type=merge', '-p', '{"spec":{"devMode":true}}'];
  const { code, err } = await run('kubectl', ['-n', namespace, 'patch', 'reg/limited', ...change]);
  expect(code).not.toBe(0);
  expect(err).toContain('devMode is only ever switched off');
});

test('a set is not scaled below the minValidators of a register, which the condition names', async () => {
  await look('scale', 'vset/small', '--replicas=2');
  await within('the walk to stop', 60_000, async () => {
    const ready = (await read('vset/small')).status.conditions.find(({ type }) => type === 'Ready');
    return ready?.reason === 'RolloutBlocked' && /limited.*minValidators/.test(ready.message);
  });
  expect(await members()).toHaveLength(3);
  expect((await read('reg/limited')).status.validators?.size).toBe(3);
  await look('scale', 'vset/small', '--replicas=3');
  await bothReady();
});

test('a register is kept when its object is deleted', async () => {
  const path = `/api/registers/${registerId}/dockets/latest`;
  const head = async () => docket.parse((await api.expect(200, 'GET', path, { token })).body);
  const before = await head();
  await look('delete', 'reg/limited', '--timeout=60s');
  expect(await head()).toEqual(before);
});
