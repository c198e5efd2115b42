import { beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { type Api, createApi } from '../harness/api.ts';
import { checkEvidence, collectEvidence } from '../harness/evidence.ts';
import { createPerson } from '../harness/governance.ts';
import { signIn } from '../harness/journey.ts';
import { readState } from '../harness/system.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace, openGateway } from './installed.ts';
import { eventually, kubectl } from './kubectl.ts';

const member = (ordinal: number): string => `validator-main-${ordinal}`;
const four = [0, 1, 2, 3].map(member);
const voted = z.object({
  consensusVotes: z.array(z.object({ validatorId: z.string(), approved: z.boolean() })),
});

beforeAll(ensureInstalled, 240_000);

explainFailures(namespace);

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const status = (of: string, path: string) => look('get', of, '-o', `jsonpath={.status.${path}}`);

test('a tenant, a set of four and a register are ready within 90 s', async () => {
  const startedAt = performance.now();
  await ensureSamples(90);
  process.stdout.write(`samples ready after ${((performance.now() - startedAt) / 1_000).toFixed(1)} s\n`);
}, 120_000);

/** A member of the tenant's organisation; others cannot read its registers. */
async function tenantReader(api: Api, stateFile: string): Promise<string> {
  const { access_token: root } = await signIn(api, readState(stateFile));
  const organization = { id: await status('ten/acme', 'organizationId'), subdomain: 'acme' };
  const name = `reader-${Date.now().toString(36)}`;
  return (await createPerson(api, root, organization, { name, role: 'Administrator' })).token;
}

test('the genesis docket has the votes of four validators', async () => {
  const registerId = await status('reg/invoices', 'registerId');
  expect(registerId).toMatch(/^[0-9a-f]{32}$/);
  const door = await openGateway();
  const api = createApi(door.url);
  const token = await tenantReader(api, door.stateFile);
  await eventually(async () => {
    const { body } = await api.expect(200, 'GET', `/api/registers/${registerId}/dockets/0`, { token });
    const { consensusVotes } = voted.parse(body);
    expect(consensusVotes.map(({ validatorId }) => validatorId).sort()).toEqual(four);
    expect(consensusVotes.every(({ approved }) => approved)).toBe(true);
  });
  const evidence = await collectEvidence(api, token, registerId);
  expect(checkEvidence(evidence)).toMatch(/^[0-9a-f]{64}$/);
});

test('kubectl get shows the columns', async () => {
  const rows = async (kind: string) =>
    (await look('get', kind))
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s{2,}/));
  const [, set] = await rows('vset');
  expect(set?.slice(0, 6)).toEqual(['main', '4', '4', '4', '3', '1']);
  const [, register] = await rows('reg');
  expect(register?.slice(0, 2)).toEqual(['invoices', 'Online']);
  const [, tenant] = await rows('ten');
  expect(tenant?.slice(0, 3)).toEqual(['acme', 'Active', 'acme']);
  const all = await look('get', 'chancery');
  for (const name of [
    'register.chancery.dev/invoices',
    'tenant.chancery.dev/acme',
    'validatorset.chancery.dev/main',
  ])
    expect(all).toContain(name);
});

test('kubectl describe shows conditions with reasons, and events that do not repeat', async () => {
  for (const of of ['tenant/acme', 'validatorset/main', 'register/invoices']) {
    const text = await look('describe', of);
    expect(text).toMatch(/Reason:\s+Reconciled/);
    const generation = await look('get', of, '-o', 'jsonpath={.metadata.generation}');
    expect(await status(of, 'observedGeneration')).toBe(generation);
  }
  // another operator process may write the same event again, as its own series
  const columns =
    'custom-columns=KIND:.regarding.kind,NAME:.regarding.name,REASON:.reason,NOTE:.note,BY:.reportingInstance';
  const events = (await look('get', 'events.v1.events.k8s.io', '--no-headers', '-o', columns))
    .trim()
    .split('\n')
    .filter((line) => /^(?:Tenant|Register|ValidatorSet)\s/.test(line));
  expect(events.length).toBeGreaterThan(0);
  expect(new Set(events).size).toBe(events.length);
});

test('kubectl explain describes the policy', async () => {
  expect(await kubectl('explain', 'register.spec.policy')).toContain('consensus');
});
