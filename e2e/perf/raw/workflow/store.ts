import pg from 'pg';

/** An instance as its last step leaves it. */
export interface RawInstance {
  /** The action to take; null at the end. */
  readonly current: number | null;
  readonly seq: number;
  readonly last_tx: string;
}

/** A step that is sealed and not folded yet. */
export interface SealedStep {
  readonly operationId: string;
  readonly instanceId: string;
  readonly seq: number;
  readonly actionId: number;
  readonly isRejection: boolean;
  readonly sender: string;
  readonly txId: string;
  readonly routing: string;
  readonly next: number | null;
}

const tables = [
  'create table raw_instances (id uuid primary key, current int, seq int, last_tx text)',
  `create table raw_steps (instance_id uuid, seq int, action_id int, is_rejection boolean, sender text, tx_id text, routing text,
    primary key (instance_id, seq))`,
  `create table raw_operations (id uuid primary key, instance_id uuid, status text, input bytea, delegation bytea,
    draft bytea, submission bytea, tx_id text)`,
];

const statements = {
  find: 'select current, seq, last_tx from raw_instances where id = $1',
  steps: 'select action_id, is_rejection, tx_id from raw_steps where instance_id = $1 order by seq',
  begin: `insert into raw_operations (id, instance_id, status, input, delegation) values ($1, $2, 'Pending', $3, $4)`,
  draft: `update raw_operations set status = 'BuildingTransaction', draft = $2 where id = $1`,
  submission: `update raw_operations set status = 'Submitting', submission = $2, tx_id = $3 where id = $1`,
  foldSteps: `insert into raw_steps select * from
    unnest($1::uuid[], $2::int[], $3::int[], $4::boolean[], $5::text[], $6::text[], $7::text[])`,
  // A step continues the instance as it is, or the fold fails.
  foldInstances: `update raw_instances i set current = s.next, seq = s.seq, last_tx = s.tx_id
    from unnest($1::uuid[], $2::int[], $3::text[], $4::int[]) as s (id, seq, tx_id, next)
    where i.id = s.id and i.seq = s.seq - 1`,
  complete: `update raw_operations set status = 'Complete', input = null, delegation = null where id = any($1)`,
} as const;

export type RawStore = Awaited<ReturnType<typeof openStore>>;

/** The tables of the raw workflow service. Each write is a commit; steps are folded together. */
export async function openStore(databaseUrl: string, schema: string) {
  const options = { connectionString: databaseUrl, options: `-c search_path=${schema}` };
  const pool = new pg.Pool({ ...options, max: 10 });
  const folding = new pg.Client(options);
  // The database may end first when the benchmark ends.
  const onLost = (): never => process.exit(0);
  pool.on('error', onLost);
  folding.on('error', onLost);
  await folding.connect();
  await folding.query(`create schema ${schema}`);
  for (const table of tables) await folding.query(table);
  const query = (on: pg.Pool | pg.Client, name: keyof typeof statements, values: readonly unknown[]) =>
    on.query({ name, text: statements[name], values: [...values] });
  return {
    insertInstances: async (ids: readonly string[], pin: string) => {
      const text = 'insert into raw_instances select id, 0, -1, $2 from unnest($1::uuid[]) id';
      await pool.query(text, [ids, pin]);
    },
    findInstance: async (id: string): Promise<RawInstance | undefined> =>
      (await query(pool, 'find', [id])).rows[0],
    listSteps: async (
      id: string,
    ): Promise<readonly { action_id: number; is_rejection: boolean; tx_id: string }[]> =>
      (await query(pool, 'steps', [id])).rows,
    insertOperation: (id: string, instanceId: string, sealed: readonly [input: Buffer, delegation: Buffer]) =>
      query(pool, 'begin', [id, instanceId, ...sealed]),
    saveDraft: (id: string, draft: Buffer) => query(pool, 'draft', [id, draft]),
    saveSubmission: (id: string, submission: string, txId: string) =>
      query(pool, 'submission', [id, Buffer.from(submission), txId]),
    /** Folds steps and completes their operations in one transaction. */
    fold: async (steps: readonly SealedStep[]) => {
      const column = <K extends keyof SealedStep>(name: K) => steps.map((step) => step[name]);
      const places = [column('instanceId'), column('seq')];
      await folding.query('begin');
      await query(folding, 'foldSteps', [
        ...places,
        ...[column('actionId'), column('isRejection'), column('sender'), column('txId'), column('routing')],
      ]);
      const changed = await query(folding, 'foldInstances', [...places, column('txId'), column('next')]);
      if (changed.rowCount !== steps.length) throw new Error('a step does not continue its instance');
      await query(folding, 'complete', [column('operationId')]);
      await folding.query('commit');
    },
  };
}
