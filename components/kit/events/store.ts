import { sql } from 'kysely';
import type { Reader, Transactor } from '#kit/db/db.ts';

/** The position before the first event. */
const START = '';

/** A statement for the component's migration. It never changes: another form would be another migration. */
export const eventCursorsTable = `CREATE TABLE event_cursors (
    source text PRIMARY KEY,
    position text NOT NULL
  )`;

interface CursorRow {
  readonly position: string;
}

/** The position in the log of `source`; empty when nothing was read. */
export async function findPosition<DB>(db: Reader<DB>, source: string): Promise<string> {
  const { rows } = await sql<CursorRow>`select position from event_cursors where source = ${source}`.execute(
    db,
  );
  return rows[0]?.position ?? START;
}

/** The same, locked until the transaction ends, so that one replica at a time advances it. */
export async function lockPosition<DB>(tx: Transactor<DB>, source: string): Promise<string> {
  const { rows } = await sql<CursorRow>`insert into event_cursors (source, position)
    values (${source}, ${START})
    on conflict (source) do update set source = excluded.source
    returning position`.execute(tx);
  return rows[0]?.position ?? START;
}

/** Moves a position that this transaction has locked. */
export async function savePosition<DB>(tx: Transactor<DB>, source: string, position: string): Promise<void> {
  await sql`update event_cursors set position = ${position} where source = ${source}`.execute(tx);
}
