import { randomBytes } from 'node:crypto';
import pg from 'pg';

/** A role and a schema for each component with a database. */
export interface ComponentDatabases {
  readonly url: (component: string) => string;
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const roleOf = (component: string): string => `chancery_${component}`;

async function createDatabase(adminUrl: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    const found = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (found.rowCount === 0) {
      await client.query(`create database ${quote(name)}`);
    }
  } finally {
    await client.end();
  }
}

/**
 * Prepares the embedded server: database `chancery`, one password-less role a component (the socket's directory is
 * private to the user). `urlOf(database, role)` gives connection strings.
 */
export async function prepareEmbedded(
  urlOf: (database: string, role?: string) => string,
  components: readonly string[],
): Promise<ComponentDatabases> {
  await createDatabase(urlOf('postgres'), 'chancery');
  await prepareRoles(urlOf('chancery'), components, () => undefined);
  return { url: (component) => urlOf('chancery', roleOf(component)) };
}

/**
 * Prepares an external server: with CREATEROLE one role and schema a component, whose passwords `secretOf` gives;
 * without it the given role owns a schema for each.
 */
export async function prepareExternal(
  databaseUrl: string,
  components: readonly string[],
  secretOf: (name: string, make: () => string) => string,
): Promise<ComponentDatabases> {
  if (!(await mayCreateRoles(databaseUrl))) {
    return { url: () => databaseUrl };
  }
  const passwords = new Map(
    components.map((component) => [
      component,
      secretOf(roleOf(component), () => randomBytes(24).toString('base64url')),
    ]),
  );
  await prepareRoles(databaseUrl, components, (component) => passwords.get(component));
  return {
    url: (component) => {
      const url = new URL(databaseUrl);
      url.username = roleOf(component);
      url.password = passwords.get(component) ?? '';
      return url.toString();
    },
  };
}

async function mayCreateRoles(databaseUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ allowed: boolean }>(
      'select rolcreaterole or rolsuper as allowed from pg_roles where rolname = current_user',
    );
    return rows[0]?.allowed === true;
  } finally {
    await client.end();
  }
}

async function prepareRoles(
  url: string,
  components: readonly string[],
  passwordOf: (component: string) => string | undefined,
): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const component of components) {
      await prepareRole(client, component, passwordOf(component));
    }
  } finally {
    await client.end();
  }
}

async function prepareRole(
  client: pg.Client,
  component: string,
  password: string | undefined,
): Promise<void> {
  const role = quote(roleOf(component));
  const found = await client.query('select 1 from pg_roles where rolname = $1', [roleOf(component)]);
  if (found.rowCount === 0) {
    await client.query(
      `create role ${role} login${password === undefined ? '' : ` password ${literal(password)}`}`,
    );
  }
  await client.query(`grant ${role} to current_user`);
  await client.query(`create schema if not exists ${quote(component)} authorization ${role}`);
}
