import pg from 'pg';
import { readSecret } from '../chart.ts';
import { forward } from '../forward.ts';

/** Rows of custom resources in the tables of the services, read directly from the database. */
export interface Rows {
  /** uid of the Tenant (empty for none), subdomain, version of the row. */
  readonly organizations: readonly (readonly string[])[];
  /** title, id. */
  readonly registers: readonly (readonly string[])[];
  /** uid of the Register, id of its register, version of the row. */
  readonly managed: readonly (readonly string[])[];
}

/** Opens the PostgreSQL of the demo values during a function. */
export async function visitDatabase<T>(
  namespace: string,
  visit: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const to = await forward(namespace, 'postgres', 5432);
  const [host = '', port = ''] = to.address.split(':');
  const client = new pg.Client({
    host,
    port: Number(port),
    user: 'postgres',
    password: await readSecret(namespace, 'postgres', 'password'),
    database: 'chancery',
    // the connection is a port-forward to this pod
    ssl: { rejectUnauthorized: false },
  });
  try {
    await client.connect();
    return await visit(client);
  } finally {
    await client.end();
    await to.stop();
  }
}

/** All organisations and registers of such an installation. */
export function readRows(namespace: string): Promise<Rows> {
  return visitDatabase(namespace, async (client) => {
    const rows = async (text: string) =>
      (await client.query<unknown[]>({ text, rowMode: 'array' })).rows.map((row) =>
        row.map((cell) => String(cell ?? '')),
      );
    return {
      organizations: await rows('select resource_uid, subdomain, xmin from tenant.organizations order by 2'),
      registers: await rows('select title, register_id from register.registers order by 1, 2'),
      managed: await rows('select uid, register_id, xmin from register.managed_registers order by 1'),
    };
  });
}
