import { finished } from 'node:stream/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { type Database, unavailable } from '#kit/db/db.ts';

async function connect({ pool }: Pick<Database<unknown>, 'pool'>): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw unavailable(error) ?? error;
  }
}

/**
 * Runs `act` with a connection of its own, for COPY and for prepared statements. A transaction that `act` leaves open
 * by throwing is rolled back.
 *
 * @throws AppError unavailable when no connection can be opened, and what `act` throws
 */
export async function withClient<T>(
  database: Pick<Database<unknown>, 'pool'>,
  act: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await connect(database);
  let broken: Error | undefined;
  const onLost = (error: Error) => {
    broken = error;
  };
  // A lost connection emits an error while it is checked out; without a listener that ends the process.
  client.on('error', onLost);
  try {
    return await act(client);
  } catch (error) {
    await client.query('rollback').catch(onLost);
    throw error;
  } finally {
    client.off('error', onLost);
    client.release(broken);
  }
}

/** Runs `COPY ... FROM STDIN (FORMAT binary)` with rows in the format of `createCopyWriter`. */
export async function copyRows(client: PoolClient, statement: string, rows: Buffer): Promise<void> {
  const stream = client.query(copyFrom(statement));
  stream.end(rows);
  await finished(stream);
}
