import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { environmentOf } from '../../harness/service-caller.ts';
import { inParallel } from '../../harness/wait.ts';
import { timed } from '../latency.ts';
import { post, presign, validatePath } from '../load.ts';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import { connectLedger, foldInMemory } from './folding.ts';
import type { Lengths } from './lengths.ts';
import { fourSteps, openPermits } from './permits.ts';
import { lanes, Product } from './sides.ts';
import { byTurns } from './turns.ts';

const pollMs = 5;
const deadlineMs = 300_000;
const projection = ['instance_roles', 'steps', 'instances', 'step_cursors'];

interface Folded {
  readonly registerId: string;
  /** Of a person who may submit to the register. */
  readonly token: string;
  readonly steps: number;
  readonly database: pg.Client;
}

/** Seconds until the workflow service has made the rows of all steps again. */
async function rebuild(stage: Stage, { registerId, token, steps, database }: Folded): Promise<number> {
  const validator = stage.pool(stage.validatorUrls()[0] ?? '', 1);
  const [wake = ''] = presign(registerId, 1);
  const tables = projection.map(
    (table) => `delete from blueprint.${table} where register_id = '${registerId}'`,
  );
  try {
    await database.query(`begin; ${tables.join('; ')}; commit`);
    const ms = await timed(async () => {
      // A register is read again when it has grown.
      await post(validator, validatePath, token, wake);
      await waitFor(database, registerId, steps);
    });
    return ms / 1000;
  } finally {
    await validator.close();
  }
}

async function waitFor(database: pg.Client, registerId: string, steps: number): Promise<void> {
  const text = 'select count(*)::int as made from blueprint.steps where register_id = $1';
  for (const end = performance.now() + deadlineMs; performance.now() < end; await pause(pollMs)) {
    const { rows } = await database.query({ name: 'made', text, values: [registerId] });
    if (rows[0].made === steps) return;
  }
  throw new Error(`the steps of a register were not folded within ${deadlineMs / 1000} s`);
}

/** The rows of instances made again from the ledger, beside reading and folding the same steps in memory. */
export async function rebuilding(stage: Stage, lengths: Lengths): Promise<Row> {
  const permits = await openPermits(stage, { devMode: true });
  const { registerId, definition } = permits;
  const { token } = permits.parties['planning-office'];
  const product = await Product.open(stage, permits);
  const ids = await product.start(lengths.folded);
  await inParallel(ids, lanes, async (id) => {
    for (const step of fourSteps) await product.take(id, step);
  });
  await product.close();
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
      async () => steps / (await rebuild(stage, { registerId, token, steps, database })),
      async () => steps / ((await timed(inMemory)) / 1000),
    );
    return {
      measure: `rebuild of ${steps} steps, against folding them in memory`,
      ...pairs,
      unit: '/s',
      bound: { kind: 'share', atLeast: 0.4 },
    };
  } finally {
    close();
    await database.end();
  }
}
