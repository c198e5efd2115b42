import pg from 'pg';

/** A commit of the blueprint service, and the moment in an operation that it ends. */
export const COMMIT_POINTS = ['operation', 'envelope', 'signature', 'acceptance', 'fold'] as const;

export type CommitPoint = (typeof COMMIT_POINTS)[number];

/** Key of the advisory lock that held statements wait for. */
const lockKey = 4711;

/**
 * In the transaction that makes an operation, takes it to its first step, stores its signature, stores that the register
 * has it, or stores its sealed step: waits for the lock when the instance has that point.
 */
const hold = `
  create function commit_gates.hold() returns trigger language plpgsql security definer as $$
  declare
    reached text;
  begin
    if tg_table_name = 'steps' then reached := 'fold';
    elsif tg_op = 'INSERT' then reached := 'operation';
    elsif new.status = 'ResolvingKeys' and old.status = 'Pending' then reached := 'envelope';
    elsif new.submission is not null and old.submission is null then reached := 'signature';
    elsif new.is_accepted and not old.is_accepted then reached := 'acceptance';
    end if;
    perform pg_advisory_xact_lock_shared(${lockKey}) from commit_gates.points p
      where p.instance_id = new.instance_id and p.point = reached;
    return new;
  end $$`;

/** Holds transactions of the blueprint service open at chosen points, in the database of the test. */
export interface CommitGates {
  /** Steps of an instance wait at a point while the gates are closed. */
  choose(instanceId: string, point: CommitPoint): Promise<void>;
  close(): Promise<void>;
  /** Number of transactions that wait. */
  waiting(): Promise<number>;
  /** Lets all continue, and forgets the chosen points. */
  open(): Promise<void>;
  end(): Promise<void>;
}

/** Adds the gates to a database with the tables of the blueprint service. */
export async function addCommitGates(connectionString: string): Promise<CommitGates> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  for (const statement of [
    'create schema commit_gates',
    'create table commit_gates.points (instance_id uuid primary key, point text not null)',
    hold,
    'grant usage on schema commit_gates to public',
    `create trigger hold before insert or update on blueprint.operations
      for each row execute function commit_gates.hold()`,
    'create trigger hold before insert on blueprint.steps for each row execute function commit_gates.hold()',
  ])
    await client.query(statement);
  return {
    choose: async (instanceId, point) => {
      await client.query('insert into commit_gates.points values ($1, $2)', [instanceId, point]);
    },
    close: async () => {
      await client.query('select pg_advisory_lock($1::bigint)', [lockKey]);
    },
    waiting: async () => {
      const { rows } = await client.query<{ count: number }>(
        `select count(*)::int as count from pg_locks where locktype = 'advisory' and objid = $1 and not granted`,
        [lockKey],
      );
      return rows[0]?.count ?? 0;
    },
    open: async () => {
      await client.query('delete from commit_gates.points');
      await client.query('select pg_advisory_unlock($1::bigint)', [lockKey]);
    },
    end: () => client.end(),
  };
}
