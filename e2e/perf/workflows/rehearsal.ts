import { timed } from '../latency.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from './lengths.ts';
import { fourSteps, openPermits, type Permits } from './permits.ts';
import { call, Product } from './sides.ts';

interface Times {
  readonly whole: number[];
  readonly steps: number[];
  readonly actions: number[];
}

/** Milliseconds of a whole rehearsal, and of its steps alone. */
async function rehearse(
  { pool }: Product,
  { parties, blueprintId }: Permits,
): Promise<[whole: number, steps: number]> {
  const { token } = parties['planning-office'];
  const base = `/api/blueprints/${blueprintId}/rehearsals`;
  const post = async (path: string, json: object, status: number) =>
    (await call(pool, { method: 'POST', path, token, json }, [status])).body;
  let [status, steps] = ['', 0];
  const whole = await timed(async () => {
    const { rehearsalId } = await post(base, { mode: 'full' }, 201);
    steps = await timed(async () => {
      for (const { actionId, payload } of fourSteps)
        status = (await post(`${base}/${rehearsalId}/steps`, { actionId, payload }, 200)).status;
    });
  });
  if (status !== 'Passed') throw new Error(`the rehearsal is ${status}`);
  return [whole, steps];
}

/** Milliseconds of the same actions of an instance on a register of development, with its creation. */
function act(product: Product): Promise<number> {
  return timed(async () => {
    const [instanceId = ''] = await product.start(1);
    for (const step of fourSteps) await product.take(instanceId, step);
  });
}

/** A rehearsal of all four actions, from its start until it has passed, beside the same actions on a register of development. */
export async function rehearsal(stage: Stage, { rounds, warmUp }: Lengths): Promise<readonly Row[]> {
  const permits = await openPermits(stage, { devMode: true });
  const product = await Product.open(stage, permits);
  const times: Times = { whole: [], steps: [], actions: [] };
  try {
    // The first one creates the sandbox of the organisation.
    await rehearse(product, permits);
    for (let n = 0; n < warmUp + rounds; n++) {
      const early = n % 2 === 0 ? await act(product) : undefined;
      const [whole, steps] = await rehearse(product, permits);
      const actions = early ?? (await act(product));
      if (n < warmUp) continue;
      times.whole.push(whole);
      times.steps.push(steps);
      times.actions.push(actions);
    }
  } finally {
    await product.close();
  }
  const { whole, steps, actions: raw } = times;
  return [
    {
      measure: 'full rehearsal, against the same actions',
      ours: whole,
      raw,
      unit: 'ms',
      bound: { kind: 'multiple', atMost: 1.3 },
    },
    {
      measure: 'its steps alone, without its start',
      ours: steps,
      raw,
      unit: 'ms',
      bound: { kind: 'printed' },
    },
  ];
}
