import pg from 'pg';
import { readSecret } from '../chart.ts';
import { forward } from '../forward.ts';

/** What the services keep for custom resources, in their own tables: nobody's word is taken for it. */
export interface Rows {
  /** uid of the Tenant (empty for none), subdomain, version of the row. */
  readonly organizations: readonly (readonly string[])[];
  /** title, id. */
  readonly registers: readonly (readonly string[])[];
  /** uid of the Register, id of its register, version of the row. */
  readonly managed: readonly (readonly string[])[];
}

/** Every organisation and register of an installation that has the PostgreSQL of the demo values. */
export async function readRows(namespace: string): Promise<Rows> {
  const to = await forward(namespace, 'postgres', 5432);
  const rows = (role: string, text: string) => query({ namespace, role, address: to.address, text });
  try {
    return {
      organizations: await rows(
        'tenant',
        'select resource_uid, subdomain, xmin from tenant.organizations order by 2',
      ),
      registers: await rows('register', 'select title, register_id from register.registers order by 1, 2'),
      managed: await rows(
        'register',
        'select uid, register_id, xmin from register.managed_registers order by 1',
      ),
    };
  } finally {
    await to.stop();
  }
}

interface Question {
  readonly namespace: string;
  readonly role: string;
  readonly address: string;
  readonly text: string;
}

async function query({ namespace, role, address, text }: Question): Promise<string[][]> {
  const url = new URL(await readSecret(namespace, `chancery-database-${role}`, 'url'));
  const [host = '', port = ''] = address.split(':');
  const client = new pg.Client({
    host,
    port: Number(port),
    user: url.username,
    password: decodeURIComponent(url.password),
    database: url.pathname.slice(1),
    // the way there is a forward of kubectl to this very pod
    ssl: { rejectUnauthorized: false },
  });
  await client.connect();
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
    return rows.map((row) => row.map((cell) => String(cell ?? '')));
  } finally {
    await client.end();
  }
}
