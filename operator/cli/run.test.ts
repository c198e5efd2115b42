import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { AppError } from '#core/errors/errors.ts';
import { NOW_MS, ORGANIZATION_ID, REGISTER_ID } from '../plan/testing/objects.ts';
import { run, type Surface } from './run.ts';

type Members = Readonly<Record<string, unknown>>;

interface RunResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly kubectlCalls: readonly (readonly string[])[];
}

async function call(
  args: string,
  files: Readonly<Record<string, string>> = {},
  cluster = '[]',
): Promise<RunResult> {
  const kubectlCalls: (readonly string[])[] = [];
  let out = '';
  let err = '';
  const surface: Surface = {
    readFile: async (path) => {
      const text = files[path];
      if (text === undefined) throw new AppError('not_found', 'FILE_UNREADABLE', `no file ${path}`);
      return text;
    },
    kubectl: async (given) => {
      kubectlCalls.push(given);
      return cluster;
    },
    print: (text) => {
      out += text;
    },
    complain: (text) => {
      err += text;
    },
    nowMs: () => NOW_MS,
  };
  const code = await run(args.split(' ').filter(Boolean), surface);
  return { code, out, err, kubectlCalls };
}

function object(kind: string, name: string, spec: Members, status?: Members) {
  const metadata = { name, namespace: 'acme', uid: '0b0e6a1e-7b57-4c0f-9d0f-2d8f3f1c9a11', generation: 1 };
  return {
    apiVersion: 'chancery.dev/v1alpha1',
    kind,
    metadata,
    spec,
    ...(status === undefined ? {} : { status }),
  };
}

function list(...items: readonly Members[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

const refs = { tenantRef: { name: 'acme' }, validatorSetRef: { name: 'main' } };
const condition = (type: string, status: string, reason: string, message = '') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});
const ready = [condition('Ready', 'True', 'Reconciled')];

function liveMembers(count: number, silent = 0) {
  return Array.from({ length: count }, (_, ordinal) => ({
    name: `main-${ordinal}`,
    ordinal,
    validatorId: `validator-main-${ordinal}`,
    phase: 'Active',
    ready: ordinal >= silent,
    registers: [
      { registerId: REGISTER_ID, height: 5, role: ordinal === 1 ? 'proposer' : 'voter', behind: 0 },
    ],
  }));
}

const liveTenant = object(
  'Tenant',
  'acme',
  { displayName: 'Acme', subdomain: 'acme' },
  {
    organizationId: ORGANIZATION_ID,
    state: 'Active',
    userCount: 3,
    conditions: ready,
  },
);
const liveSet = (replicas: number, silent = 0) =>
  object(
    'ValidatorSet',
    'main',
    { replicas, version: '1.0.0' },
    {
      replicas,
      readyReplicas: replicas - silent,
      updatedReplicas: replicas,
      quorum: 3,
      faultTolerance: 1,
      version: '1.0.0',
      members: liveMembers(replicas, silent),
      conditions: ready,
    },
  );
const liveRegister = (spec: Members = {}) =>
  object(
    'Register',
    'invoices',
    { title: 'Invoices', ...refs, ...spec },
    {
      registerId: REGISTER_ID,
      phase: 'Online',
      height: 5,
      policyVersion: 1,
      validators: { size: 4, quorum: 3, faultTolerance: 1, operational: 4 },
      conditions: [
        ...ready,
        condition('Degraded', 'False', 'Reconciled'),
        condition('Synced', 'True', 'Reconciled'),
      ],
    },
  );

const live = list(liveTenant, liveSet(4), liveRegister());
const plan = (desired: string, old = live) => call('plan -f new --live old', { new: desired, old });

describe('plan', () => {
  test('of the samples, with an empty cluster', async () => {
    const names = ['tenant', 'validator-set', 'register'];
    const folder = new URL('../../charts/chancery/samples/', import.meta.url);
    const texts = await Promise.all(names.map((name) => readFile(new URL(`${name}.yaml`, folder), 'utf8')));
    const { code, out } = await call('plan -f samples -n acme', { samples: texts.join('\n---\n') });
    expect(out).toBe(`Tenant acme/acme: 1 step
  1. Create organisation Acme Industries with the subdomain acme

ValidatorSet acme/main: 1 step
  4 members: quorum 3, tolerates 1
  1. Start main-0 to main-3

Register acme/invoices: 1 step
  1. Create register Invoices with 4 validators, quorum 3

3 objects, 3 steps; nothing is disrupted
`);
    expect(code).toBe(0);
  });

  test('of the live state has no steps', async () => {
    const { code, out } = await plan(live);
    expect(out).toBe(`Tenant acme/acme: no changes

ValidatorSet acme/main: no changes

Register acme/invoices: no changes

3 objects, 0 steps; nothing is disrupted
`);
    expect(code).toBe(0);
  });

  test('of a larger set adds members to every register, with the quorum at each step', async () => {
    const { out } = await plan(list(object('ValidatorSet', 'main', { replicas: 7, version: '1.0.0' })));
    expect(out).toBe(`ValidatorSet acme/main: 1 step
  4 members: quorum 3, tolerates 1 -> 7 members: quorum 5, tolerates 2
  1. Start main-4 to main-6

Register acme/invoices: 3 steps
  4 validators: quorum 3, tolerates 1 -> 7 validators: quorum 5, tolerates 2
  1. Add validator-main-4: 4 -> 5 validators, quorum 3 -> 4
  2. Add validator-main-5: 5 -> 6 validators, quorum 4 -> 5
  3. Add validator-main-6: 6 -> 7 validators, quorum 5 -> 5

2 objects, 4 steps; nothing is disrupted
`);
  });

  test('of a smaller set stops at minValidators', async () => {
    const live = list(liveTenant, liveSet(4), liveRegister({ policy: { validators: { minValidators: 3 } } }));
    const { code, out } = await plan(
      list(object('ValidatorSet', 'main', { replicas: 1, version: '1.0.0' })),
      live,
    );
    expect(out).toContain(
      '1. Stop main-3, after every register has removed it from its list and it has drained; its volume is kept',
    );
    expect(out).toContain('1. Remove validator-main-3: 4 -> 3 validators, quorum 3 -> 3, 3 answer');
    expect(out).toContain(
      '! validator-main-2 cannot be removed: validators.minValidators of the policy is 3',
    );
    expect(code).toBe(1);
  });

  test('of another version names the order of the rollout with its proof, the proposer last', async () => {
    const { out } = await plan(list(object('ValidatorSet', 'main', { replicas: 4, version: '1.1.0' })));
    const order = [...out.matchAll(/Replace (main-\d)/g)].map(([, name]) => name);
    expect(order).toEqual(['main-3', 'main-2', 'main-0', 'main-1']);
    expect(out).toContain('4 of 4 answer and are caught up, 3 must agree; one is replaced');
  });

  test('of a rollout that cannot start gives the reason', async () => {
    const live = list(liveTenant, liveSet(4, 1), liveRegister());
    const { out } = await plan(list(object('ValidatorSet', 'main', { replicas: 4, version: '1.1.0' })), live);
    expect(out).toContain('The rollout stops: main-0 is not ready yet');
    expect(out).not.toContain('Replace');
  });

  test('of edits names the changes and their disruption', async () => {
    const desired = list(
      object('Tenant', 'acme', { displayName: 'Acme Ltd', subdomain: 'acme', suspended: true }),
      object('Register', 'invoices', {
        title: 'Bills',
        ...refs,
        policy: { consensus: { docketBuildIntervalMs: 500 } },
        validation: 'Paused',
      }),
    );
    const { out } = await plan(desired);
    expect(out).toBe(`Tenant acme/acme: 1 step
  1. Organisation ${ORGANIZATION_ID}: change its name to Acme Ltd, suspend it  [members of the organisation cannot sign in]

Register acme/invoices: 3 steps
  1. Validation: Running -> Paused  [no dockets are sealed meanwhile]
  2. Change title
  3. Change the policy: consensus.docketBuildIntervalMs (unset) -> 500

2 objects, 4 steps; disrupted: members of the organisation cannot sign in, no dockets are sealed meanwhile
`);
  });

  test('of a register with another set adds all members before it removes any', async () => {
    const desired = list(
      object('ValidatorSet', 'next', { replicas: 4 }),
      object('Register', 'invoices', { title: 'Invoices', ...refs, validatorSetRef: { name: 'next' } }),
    );
    const { out } = await plan(desired);
    const scaling = [...out.matchAll(/(Add|Remove) validator-(\w+-\d)/g)].map(
      ([, verb, name]) => `${verb} ${name}`,
    );
    expect(scaling).toEqual([
      ...['next-0', 'next-1', 'next-2', 'next-3'].map((name) => `Add ${name}`),
      ...['main-3', 'main-2', 'main-1', 'main-0'].map((name) => `Remove ${name}`),
    ]);
  });

  test('of a missing reference or of another subdomain is refused', async () => {
    const desired = list(
      object('Tenant', 'acme', { displayName: 'Acme', subdomain: 'other' }),
      object('Register', 'lost', { title: 'Lost', ...refs, tenantRef: { name: 'nobody' } }),
    );
    const { code, out } = await plan(desired);
    expect(out).toContain('! Organisation');
    expect(out).toContain('! Tenant nobody of spec.tenantRef does not exist; create it');
    expect(out).toContain('2 cannot reach the desired state');
    expect(code).toBe(1);
  });

  test('reads the live state from the cluster with --cluster', async () => {
    const { out, kubectlCalls } = await call('plan -f new --cluster', { new: list(liveTenant) }, live);
    expect(out).toContain('Tenant acme/acme: no changes');
    expect(kubectlCalls).toEqual([
      [
        'get',
        'tenants.chancery.dev,validatorsets.chancery.dev,registers.chancery.dev',
        '--output',
        'json',
        '--all-namespaces',
      ],
    ]);
  });
});

describe('a wrong command or file', () => {
  test.each([
    ['plan', {}, 'plan needs -f FILE'],
    ['dance', {}, 'dance is not a command'],
    ['plan -f new --what', {}, "Unknown option '--what'"],
    ['plan -f new', {}, 'no file new'],
    ['plan -f new', { new: 'a: [' }, 'new cannot be read'],
    ['plan -f new', { new: 'kind: ConfigMap' }, 'new contains no Tenant, ValidatorSet or Register'],
    [
      'plan -f new',
      { new: list(object('Tenant', 'acme', { displayName: 'A' })) },
      'acme: Tenant is not valid',
    ],
    ['plan -f new --live old --cluster', { new: live, old: live }, 'exclude each other'],
  ])('%s', async (args, files, problem) => {
    const { code, out, err } = await call(args, files);
    expect(err).toContain(problem);
    expect(out).toBe('');
    expect(code).toBe(2);
  });

  test('--help prints the usage', async () => {
    expect(await call('--help')).toMatchObject({
      code: 0,
      out: expect.stringContaining('kubectl chancery plan'),
    });
    expect(await call('')).toMatchObject({ code: 2 });
  });
});

describe('status', () => {
  test('of ready objects', async () => {
    const { code, out } = await call('status -f live', { live });
    expect(out).toBe(
      `Tenant acme/acme: ready (Reconciled)
  organisation ${ORGANIZATION_ID} (Active), subdomain acme, 3 users

ValidatorSet acme/main: ready (Reconciled)
  4 of 4 ready, 4 up to date, version 1.0.0
  quorum 3, tolerates 1: 1 more may fail
  main-0 Active
  main-1 Active
  main-2 Active
  main-3 Active

Register acme/invoices: ready (Reconciled)
  register ${REGISTER_ID} (Online), height 5, policy version 1
  4 of 4 validators answer, quorum 3, tolerates 1: 1 more may fail

3 objects are ready
`.replace('3 objects', '3 of 3 objects'),
    );
    expect(code).toBe(0);
  });

  test('of objects that are not ready', async () => {
    const message = '2 of 4 validators answer and 3 must agree';
    const broken = object(
      'Register',
      'invoices',
      { title: 'Invoices', ...refs },
      {
        registerId: REGISTER_ID,
        phase: 'Online',
        validators: { size: 4, quorum: 3, faultTolerance: 1, operational: 2 },
        conditions: [
          condition('Ready', 'False', 'QuorumLost', message),
          condition('Degraded', 'True', 'QuorumLost', 'Too few validators answer: 2 of 4'),
        ],
      },
    );
    const { code, out } = await call(
      'status -n acme',
      {},
      list(broken, object('Tenant', 'new', { displayName: 'New', subdomain: 'new' })),
    );
    expect(out).toContain(`Register acme/invoices: not ready (QuorumLost): ${message}`);
    expect(out).toContain('quorum 3, tolerates 1: 1 too few to seal');
    expect(out).toContain('Degraded=True: Too few validators answer: 2 of 4');
    expect(out).toContain('Tenant acme/new: not reconciled by the operator yet');
    expect(out).toContain('0 of 2 objects are ready');
    expect(code).toBe(1);
  });
});
