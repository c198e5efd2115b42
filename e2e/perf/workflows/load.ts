import { inParallel } from '../../harness/wait.ts';
import { timed } from '../latency.ts';
import { storedIn } from '../load.ts';
import { percentile, type Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Lengths } from './lengths.ts';
import { fourSteps, openPermits, type Permits } from './permits.ts';
import { askRoute, routePath } from './routing.ts';
import { call, lanes, Product } from './sides.ts';

/** Milliseconds of each request. */
interface Times {
  readonly helper: number[];
  readonly submit: number[];
  readonly fold: number[];
  readonly disclosure: number[];
}

const reader = 'planning-office';

/** Walks an instance to its end; before each step a helper is asked, after each its disclosures are read. */
async function walk(product: Product, permits: Permits, instanceId: string): Promise<Times> {
  const times: Times = { helper: [], submit: [], fold: [], disclosure: [] };
  const { parties, blueprintId } = permits;
  const asked = { path: routePath, token: parties[reader].token, blueprintId };
  for (const step of fourSteps) {
    times.helper.push(await timed(() => askRoute(product.pool, asked)));
    const submit = await timed(() => product.submit(instanceId, step));
    const rest = await timed(() => product.folded(instanceId, step));
    times.submit.push(submit);
    times.fold.push(submit + rest);
    times.disclosure.push(await timed(() => product.disclosures(instanceId, reader)));
  }
  return times;
}

/** Whether an instance has come to its end by exactly four steps, none lost and none doubled. */
async function isWhole({ pool }: Product, permits: Permits, instanceId: string): Promise<boolean> {
  const { token } = permits.parties[reader];
  const { body } = await call(pool, { method: 'GET', path: `/api/instances/${instanceId}`, token });
  const { state, completedActionCount, version } = body;
  return state === 'Completed' && completedActionCount === fourSteps.length && version === fourSteps.length;
}

/** Fifty instances side by side on an encrypted register, each through its four actions. */
export async function instancesUnderLoad(stage: Stage, { load }: Lengths): Promise<readonly Row[]> {
  const permits = await openPermits(stage, { devMode: false });
  const product = await Product.open(stage, permits);
  const { registerId } = permits;
  const stored = () => storedIn({ ...stage, token: permits.parties[reader].token }, registerId);
  try {
    const before = await stored();
    const ids = await product.start(load);
    const all = await Promise.all(ids.map((id) => walk(product, permits, id)));
    const whole = await inParallel(ids, lanes, (id) => isWhole(product, permits, id));
    const sealed = (await stored()) - before;
    const what = `${load} x ${fourSteps.length} encrypted actions`;
    const row = (measure: string, figure: number, unit: string, bound: Row['bound']): Row => ({
      measure: `${what}: ${measure}`,
      ours: [figure],
      raw: [],
      unit,
      bound,
    });
    const p95 = (name: keyof Times) =>
      percentile(
        all.flatMap((times) => times[name]),
        0.95,
      );
    const none = { kind: 'absolute', atMost: 0 } as const;
    return [
      row('helper, p95', p95('helper'), 'ms', { kind: 'printed' }),
      row('submit until 202, p95', p95('submit'), 'ms', { kind: 'printed' }),
      row('submit until folded, p95', p95('fold'), 'ms', { kind: 'printed' }),
      row('disclosures, p95', p95('disclosure'), 'ms', { kind: 'printed' }),
      row('not Completed by four steps', whole.filter((each) => !each).length, 'instances', none),
      row('lost or doubled', Math.abs(sealed - load * fourSteps.length), 'actions', none),
    ];
  } finally {
    await product.close();
  }
}
