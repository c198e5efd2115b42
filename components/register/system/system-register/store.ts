import { type Database, unavailable } from '#kit/db/db.ts';
import { statement } from '#kit/db/statement.ts';
import type { RegisterSchema } from '../../database/schema.ts';

/** Name of the advisory lock. */
const name = 'chancery.register.system-register';

interface Lock {
  readonly name: string;
}

const tryLock = statement<Lock>('select pg_try_advisory_lock(hashtextextended(:name, 0)) as taken');
const unlock = statement<Lock>('select pg_advisory_unlock(hashtextextended(:name, 0))');

/**
 * Runs the function while no other replica does. The advisory lock belongs to the session, so it ends with the
 * connection and no transaction stays open. Undefined when another replica holds it.
 */
export async function tryAlone<T>(
  database: Database<RegisterSchema>,
  act: () => Promise<T>,
): Promise<T | undefined> {
  const client = await database.pool.connect().catch((error: unknown) => {
    throw unavailable(error) ?? error;
  });
  let lost: Error | undefined;
  const onLost = (error: Error) => {
    lost = error;
  };
  client.on('error', onLost);
  try {
    const taken = await client.query<{ taken: boolean }>(tryLock({ name }));
    if (taken.rows[0]?.taken !== true) return undefined;
    try {
      return await act();
    } finally {
      await client.query(unlock({ name })).catch(onLost);
    }
  } finally {
    client.off('error', onLost);
    client.release(lost);
  }
}
