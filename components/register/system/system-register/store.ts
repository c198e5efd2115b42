import { type Database, unavailable } from '#kit/db/db.ts';
import type { RegisterSchema } from '../../database/schema.ts';

const name = 'chancery.register.system-register';

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
    const taken = await client.query<{ taken: boolean }>(
      'select pg_try_advisory_lock(hashtextextended($1, 0)) as taken',
      [name],
    );
    if (taken.rows[0]?.taken !== true) return undefined;
    try {
      return await act();
    } finally {
      await client.query('select pg_advisory_unlock(hashtextextended($1, 0))', [name]).catch(onLost);
    }
  } finally {
    client.off('error', onLost);
    client.release(lost);
  }
}
