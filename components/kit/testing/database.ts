import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';

declare module 'vitest' {
  interface ProvidedContext {
    /** Address of the PostgreSQL of this test run, database `postgres`. */
    postgresUrl: string;
  }
}

/**
 * Creates a new database for one test file and returns its address. Databases are not dropped, because the whole server
 * is deleted after the run.
 */
export async function testDatabase(name: string): Promise<string> {
  const server = inject('postgresUrl');
  const database = `${name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '_')
    .slice(0, 40)}_${randomBytes(4).toString('hex')}`;
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query(`create database ${database} template template0`);
  } finally {
    await client.end();
  }
  return databaseUrl(server, database);
}

/** The same server, another database. */
export function databaseUrl(server: string, database: string): string {
  return server.replace(/^(postgres(?:ql)?:\/\/[^/?]*)(\/[^?]*)?/, `$1/${database}`);
}
