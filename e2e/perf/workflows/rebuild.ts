import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { environmentOf } from '../../harness/service-caller.ts';
import { inParallel } from '../../harness/wait.ts';
import { timed } from '../latency.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import { connectLedger, foldInMemory } from './folding.ts';
import type { Lengths } from './lengths.ts';
import { fourSteps, openPermits } from './permits.ts';
import { call, lanes, Product } from './sides.ts';
import { byTurns } from './turns.ts';

const pollMs = 5;
const deadlineMs = 300_000;

/** Seconds from the request to rebuild the rows of a register until they are made from all of its steps again. */
async function rebuild(
  { pool }: Product,
  { database, registerId, token }: { database: pg.Client; registerId: string; token: string },
): Promise<number> {
  const path = `/api/admin/workflows/${registerId}/projection/rebuild`;
  const ms = await timed(async () => {
    await call(pool, { method: 'POST', path, token }, [202]);
    await rebuilt(database, registerId);
  });
  return ms / 1000;
}

/** Reads the cursor itself, which disturbs less than asking the service so often. */
async function rebuilt(database: pg.Client, registerId: string): Promise<void> {
  const text = 'select rebuild_docket from blueprint.step_cursors where register_id = $1';
  for (const end = performance.now() + deadlineMs; performance.now() < end; await pause(pollMs)) {
    const { rows } = await database.query({ name: 'rebuilt', text, values: [registerId] });
    if (rows[0].rebuild_docket === null) return;
  }
  throw new Error(`the steps of a register were not folded within ${deadlineMs / 1000} s`);
}

async function assertMade(database: pg.Client, registerId: string, steps: number): Promise<void> {
  const text = 'select count(*)::int as made from blueprint.steps where register_id = $1';
  const [{ made }] = (await database.query(text, [registerId])).rows;
  if (made !== steps) throw new Error(`a rebuild made ${made} of ${steps} steps`);
}

/** The rows of instances made again from the ledger, beside reading and folding the same steps in memory. */
export async function rebuilding(stage: Stage, lengths: Lengths): Promise<Row> {
  const permits = await openPermits(stage, { devMode: true });
  const { registerId, definition } = permits;
  const token = await stage.freshToken();
  const product = await Product.open(stage, permits);
  const ids = await product.start(lengths.folded);
  await inParallel(ids, lanes, async (id) => {
    for (const step of fourSteps) await product.take(id, step);
  });
  const steps = ids.length * fourSteps.length;
  const database = new pg.Client({
    connectionString: environmentOf(stage.system.state, 'blueprint')['DATABASE_URL'],
  });
  await database.connect();
  const { client, close } = await connectLedger(stage);
  const inMemory = async (): Promise<void> => {
    const instances = await foldInMemory(client, registerId, definition);
    if (instances !== ids.length) throw new Error(`${instances} instances were folded, not ${ids.length}`);
  };
  try {
    const pairs = await byTurns(
      lengths,
      async () => steps / (await rebuild(product, { database, registerId, token })),
      async () => steps / ((await timed(inMemory)) / 1000),
    );
    await assertMade(database, registerId, steps);
    return {
      measure: `rebuild of ${steps} steps, against folding them in memory`,
      ...pairs,
      unit: '/s',
      bound: { kind: 'share', atLeast: 0.4 },
    };
  } finally {
    close();
    await Promise.all([product.close(), database.end()]);
  }
}
