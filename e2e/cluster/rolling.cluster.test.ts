import { beforeAll, expect, test } from 'vitest';
import { waitFor } from '#kit/testing/wait.ts';
import { explainFailures } from './diagnosis.ts';
import { ensureInstalled, ensureSamples, namespace } from './installed.ts';
import { kubectl } from './kubectl.ts';

/** A set of four that seals a register, under what happens to sets: changes, bad versions, losses, scaling. */

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string };
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

beforeAll(async () => {
  await ensureInstalled();
  await ensureSamples(90);
  await patch({ update: { minReadySeconds: 2 } });
}, 360_000);

explainFailures(namespace);

const look = (...args: readonly string[]) => kubectl('-n', namespace, ...args);
const patch = (spec: object) => look('patch', 'vset/main', '--type=merge', '-p', JSON.stringify({ spec }));

async function members(): Promise<readonly Pod[]> {
  const found = await look('get', 'pods', '-l', 'chancery.dev/validator-set=main', '-o', 'json');
  return (JSON.parse(found) as { readonly items: readonly Pod[] }).items;
}

async function uids(): Promise<ReadonlyMap<string, string>> {
  return new Map((await members()).map(({ metadata }) => [metadata.name, metadata.uid]));
}

async function conditions(): Promise<ReadonlyMap<string, Condition>> {
  const { status } = JSON.parse(await look('get', 'vset/main', '-o', 'json')) as {
    readonly status: { readonly conditions: readonly Condition[] };
  };
  return new Map(status.conditions.map((each) => [each.type, each]));
}

const isReady = ({ status }: Pod) =>
  status.conditions?.some((each) => each.type === 'Ready' && each.status === 'True');
const within = <T>(what: string, deadlineMs: number, check: () => Promise<T>) =>
  waitFor(check, { what, deadlineMs, everyMs: 300 });
/** Ready, and of the generation that was written last. */
const settled = async () => {
  const object = JSON.parse(await look('get', 'vset/main', '-o', 'json'));
  const isSeen = object.status.observedGeneration === object.metadata.generation;
  return isSeen && (await conditions()).get('Ready')?.status === 'True';
};

function changed(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] {
  return [...before].filter(([name, uid]) => after.get(name) !== uid).map(([name]) => name);
}

test('a change of the pods replaces all of them, one at a time, and the quorum stays', async () => {
  const before = await uids();
  await patch({ podAnnotations: { 'example.org/change': 'one' } });
  const away: number[] = [];
  await within('the roll', 240_000, async () => {
    const found = await members();
    away.push(4 - found.filter(isReady).length);
    expect((await conditions()).get('QuorumHealthy')).toMatchObject({ status: 'True' });
    return changed(before, await uids()).length === 4 && (await settled());
  });
  expect(Math.max(...away)).toBe(1);
  const events = await look(
    'get',
    'events',
    '-o',
    'jsonpath={range .items[*]}{.action}: {.message}{.note}{"\\n"}{end}',
  );
  expect(events).toContain('3 must agree; one goes');
});

test('a bad version stops after one pod; going back replaces only that pod', async () => {
  const before = await uids();
  await patch({ image: 'chancery.local/validator:0.0.0-missing' });
  await within('the roll to stop', 90_000, async () => {
    const ready = (await conditions()).get('Ready');
    return ready?.reason === 'RolloutBlocked' && /ErrImage|ImagePull/.test(ready.message);
  });
  const [bad, ...others] = changed(before, await uids());
  expect(others).toEqual([]);
  const during = await uids();
  await patch({ image: null });
  await within('the set to be well', 120_000, settled);
  expect(changed(during, await uids())).toEqual([bad]);
  expect((await conditions()).get('QuorumHealthy')?.status).toBe('True');
});

test('a member that is lost shows within 10 s, and comes back by itself', async () => {
  await look('delete', 'pod/main-0', '--grace-period=0', '--force');
  await within('Degraded', 10_000, async () => (await conditions()).get('Degraded')?.status === 'True');
  expect((await conditions()).get('QuorumHealthy')?.status).toBe('True');
  await within('the set to be well', 120_000, settled);
});

test('the operator is started anew and restarts nothing', async () => {
  const before = await uids();
  await look('rollout', 'restart', 'deployment/service-operator');
  await look('rollout', 'status', 'deployment/service-operator', '--timeout=50s');
  await look('annotate', 'vset/main', `chancery.dev/reconcile-at=${Date.now()}`);
  await within('the set to be well', 60_000, settled);
  expect(changed(before, await uids())).toEqual([]);
});

test('a fifth member joins the register, and leaves it again before its pod goes', async () => {
  const voting = () => look('get', 'reg/invoices', '-o', 'jsonpath={.status.validators.size}');
  await look('scale', 'vset/main', '--replicas=5');
  await within('five to vote', 120_000, async () => (await voting()) === '5');
  await within('the set to be well', 60_000, settled);
  await look('scale', 'vset/main', '--replicas=4');
  await within('four pods', 180_000, async () => {
    const count = (await members()).length;
    if (count === 4) expect(await voting()).toBe('4');
    return count === 4;
  });
  await within('the set to be well', 60_000, settled);
});
