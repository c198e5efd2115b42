import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { runInitdb, withQuietServer } from './server.ts';
import type { PostgresSettings } from './settings.ts';

/** The database that every new cluster has. */
const firstDatabase = 'postgres';

/**
 * Makes the folder of the database ready for a server that listens: made where it is missing, superuser's password as
 * the file says, access by password only, the scripts run. A first start happens beside its place and is then renamed, so
 * an interrupted one leaves nothing that looks complete. The scripts run at every start: a release that needs one more role
 * finds it in a database that an earlier release made.
 */
export async function prepareData(settings: PostgresSettings): Promise<void> {
  const data = settings.POSTGRES_DATA;
  const user = settings.POSTGRES_USER;
  if (!existsSync(join(data, 'PG_VERSION'))) await initialise(settings);
  // fsGroup of a pod opens the folder to the group at every mount, and PostgreSQL refuses to start in such a folder
  chmodSync(data, 0o700);
  writeFileSync(join(data, 'pg_hba.conf'), accessRules(settings.POSTGRES_TLS_CERT_FILE !== undefined));
  await withQuietServer(data, { user, database: settings.POSTGRES_DB }, async (client) => {
    await setPassword(client, settings);
    await runScripts(client, settings.POSTGRES_INIT_DIR);
  });
}

async function initialise(settings: PostgresSettings): Promise<void> {
  const data = settings.POSTGRES_DATA;
  const user = settings.POSTGRES_USER;
  const draft = `${data}.first`;
  mkdirSync(dirname(data), { recursive: true });
  rmSync(draft, { recursive: true, force: true });
  await runInitdb(draft, user);
  const database = settings.POSTGRES_DB;
  if (database !== firstDatabase) {
    const create = `create database ${pg.escapeIdentifier(database)}`;
    await withQuietServer(draft, { user, database: firstDatabase }, async (client) => {
      await client.query(create);
    });
  }
  renameSync(draft, data);
}

async function runScripts(client: pg.Client, folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const names = readdirSync(folder).filter((name) => name.endsWith('.sql'));
  // without its log: they may have passwords
  for (const name of names.sort())
    await client.query(`set log_statement = 'none';\n${readFileSync(join(folder, name), 'utf8')}`);
}

async function setPassword(client: pg.Client, settings: PostgresSettings): Promise<void> {
  const user = pg.escapeIdentifier(settings.POSTGRES_USER);
  const password = pg.escapeLiteral(settings.POSTGRES_PASSWORD_FILE.text());
  await client.query(`set log_statement = 'none'; alter role ${user} password ${password}`);
}

/** Everything inside the container may come in; from elsewhere only with a password, and over TLS where there is TLS. */
function accessRules(tls: boolean): string {
  return `local all all trust\n${tls ? 'hostssl' : 'host'} all all all scram-sha-256\n`;
}
