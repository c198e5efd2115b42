import { percentile, type Row } from '../report.ts';
import type { ObjectFollower } from './follow.ts';
import type { Stage } from './stage.ts';

const samples = 100;
const deadlineMs = 30_000;

/** Milliseconds from before a change of a spec is sent until its status reports it as done. */
export async function edit(
  { api }: Pick<Stage, 'api'>,
  followed: ObjectFollower,
  name: string,
  spec: Readonly<Record<string, unknown>>,
): Promise<number> {
  const startedAt = performance.now();
  const path = `${followed.path}/${name}`;
  const { status, body } = await api.request('PATCH', path, { spec }, 'application/merge-patch+json');
  if (status !== 200) throw new Error(`${path}: ${JSON.stringify(body)}`);
  const { generation } = body['metadata'] as { generation: number };
  await followed.until(`the edit of ${name} is served`, deadlineMs, () => {
    const seen = followed.objects.get(name);
    return seen?.isReady === true && seen.observedGeneration >= generation;
  });
  return performance.now() - startedAt;
}

interface Kind {
  readonly what: string;
  readonly of: (stage: Stage) => ObjectFollower;
  readonly name: string;
  readonly spec: (n: number) => Readonly<Record<string, unknown>>;
  /** Whether the figures have a bound: only those of edits that need no call of a service. */
  readonly isJudged: boolean;
}

const kinds: readonly Kind[] = [
  {
    // It changes no pod, and the services got the facts of the set when it was created.
    what: 'ValidatorSet, calls no service',
    of: ({ validatorSets }) => validatorSets,
    name: 'set-0',
    spec: (n) => ({ update: { minReadySeconds: 10 + (n % 2) } }),
    isJudged: true,
  },
  {
    what: 'Tenant, with 4 calls of services',
    of: ({ tenants }) => tenants,
    name: 'tenant-0',
    spec: (n) => ({ displayName: `Organisation edited ${n}` }),
    isJudged: false,
  },
  {
    what: 'Register, with a call of a service',
    of: ({ registers }) => registers,
    name: 'register-0',
    spec: (n) => ({ deletionPolicy: n % 2 === 0 ? 'Tombstone' : 'Retain' }),
    isJudged: false,
  },
];

/** Edits of each kind, one after the other, without other load. */
export async function idleEdits(stage: Stage): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (const { what, of, name, spec, isJudged } of kinds) {
    const figures: number[] = [];
    for (let n = 0; n < samples; n += 1) figures.push(await edit(stage, of(stage), name, spec(n)));
    const row = (share: number, atMost: number): Row => ({
      measure: `edit to Ready, idle, p${share * 100}: ${what}`,
      ours: [percentile(figures, share)],
      raw: [],
      unit: 'ms',
      bound: isJudged ? { kind: 'absolute', atMost } : { kind: 'printed' },
    });
    rows.push(row(0.5, 150), row(0.99, 1_000));
  }
  return rows;
}
