import type pg from 'pg';

/** A statement sent to PostgreSQL, with the number of rows that it wrote. */
export interface SentStatement {
  readonly text: string;
  readonly rowsWritten: number;
}

const writes = new Set(['INSERT', 'UPDATE', 'DELETE']);

/** Records all statements of the pool from now on; `take` returns and clears the record. */
export function recordStatements(pool: pg.Pool): { take(): SentStatement[] } {
  let sent: SentStatement[] = [];
  const watched = new WeakSet<pg.PoolClient>();
  pool.on('acquire', (client) => {
    if (watched.has(client)) return;
    watched.add(client);
    const { query } = client;
    Object.assign(client, {
      query: async (...args: unknown[]) => {
        const result: pg.QueryResult = await Reflect.apply(query, client, args);
        const rowsWritten = writes.has(result.command) ? (result.rowCount ?? 0) : 0;
        const text = textOf(args[0]);
        // A view of revocations reads them at times of its own.
        if (!/FROM revocations/i.test(text)) sent.push({ text, rowsWritten });
        return result;
      },
    });
  });
  return {
    take: () => {
      const taken = sent;
      sent = [];
      return taken;
    },
  };
}

function textOf(statement: unknown): string {
  if (typeof statement === 'string') return statement;
  const { text } = statement as { readonly text: string };
  return text;
}
