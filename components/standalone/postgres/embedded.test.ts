import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLogger } from '#kit/log/log.ts';
import { findBinaries } from './binaries.ts';
import { type Postgres, startPostgres } from './embedded.ts';
import { type AsRoot, chooseLauncher } from './launcher.ts';

const log = createLogger({ service: 'test', level: 'silent' });

async function query<T extends pg.QueryResultRow>(url: string, text: string): Promise<T[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<T>(text)).rows;
  } finally {
    await client.end();
  }
}

/** The ways in which this account can start PostgreSQL here: two for root, one for other accounts. */
function ways(): readonly (AsRoot | undefined)[] {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return [undefined];
  const candidates: readonly AsRoot[] = ['namespace', 'other-user'];
  return candidates.filter((way) => chooseLauncher('linux', { userId: 0, hasName: true }, way) !== undefined);
}

it('finds a way to start PostgreSQL here', () => {
  expect(ways().length).toBeGreaterThan(0);
});

describe.each(ways().map((asRoot) => ({ asRoot })))('embedded PostgreSQL, as root: $asRoot', ({ asRoot }) => {
  let root = '';
  let server: Postgres | undefined;
  const running = (): Postgres => {
    if (server === undefined) throw new Error('not started');
    return server;
  };
  const options = () => ({
    dataDir: join(root, 'data'),
    socketDir: join(root, 's'),
    fsync: false,
    ...(asRoot === undefined ? {} : { asRoot }),
    log,
  });

  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), 'pg-'));
    server = await startPostgres(options());
  }, 60_000);

  afterAll(async () => {
    await server?.stop();
    rmSync(root, { recursive: true, force: true });
  }, 30_000);

  it('answers on its socket and does not run as root', async () => {
    const rows = await query<{ version: string; encoding: string }>(
      running().url('postgres'),
      `select current_setting('server_version') as version, pg_encoding_to_char(encoding) as encoding
         from pg_database where datname = 'postgres'`,
    );
    expect(rows[0]?.version).toMatch(/^18\./);
    expect(rows[0]?.encoding).toBe('UTF8');
    expect(running().pid).toBeGreaterThan(1);
  });

  it('gives connection strings of other roles and databases', async () => {
    await query(running().url('postgres'), 'create role "some one" login');
    const rows = await query<{ who: string }>(
      running().url('postgres', 'some one'),
      'select current_user as who',
    );
    expect(rows[0]?.who).toBe('some one');
    expect(new URL(running().url('x/y')).pathname).toBe('/x%2Fy');
  });

  it('listens on the socket only, in a directory of its owner', async () => {
    const [row] = await query<{ listen: string }>(
      running().url('postgres'),
      `select current_setting('listen_addresses') as listen`,
    );
    expect(row?.listen).toBe('');
    expect(statSync(join(root, 's')).mode & 0o777).toBe(0o700);
  });

  it('refuses a second server on the same directory', async () => {
    await expect(startPostgres({ ...options(), lockWaitMs: 0 })).rejects.toMatchObject({
      kind: 'conflict',
      code: 'EMBEDDED_POSTGRES_LOCKED',
    });
    await query(running().url('postgres'), 'select 1');
  });

  it('keeps what was committed over a stop and a start', async () => {
    await query(running().url('postgres'), 'create table kept as select 7 as n');
    await running().stop();
    expect(await running().ended).toBe('exit 0');
    server = await startPostgres(options());
    const rows = await query<{ n: number }>(server.url('postgres'), 'select n from kept');
    expect(rows[0]?.n).toBe(7);
  }, 30_000);

  it('stopping twice is harmless', async () => {
    await running().stop();
    await running().stop();
    server = await startPostgres(options());
  }, 30_000);

  it('starts again after kill -9 of the server', async () => {
    process.kill(running().pid, 'SIGKILL');
    expect(await running().ended).toBe('exit SIGKILL');
    server = await startPostgres(options());
    const rows = await query<{ n: number }>(server.url('postgres'), 'select n from kept');
    expect(rows[0]?.n).toBe(7);
  }, 30_000);

  it('ends cleanly when its parent is killed, and starts again at once', async () => {
    if (process.platform !== 'linux') return;
    await running().stop();
    const module = new URL('./embedded.ts', import.meta.url).href;
    const logModule = new URL('../../kit/log/log.ts', import.meta.url).href;
    const program = `
      const { startPostgres } = await import(${JSON.stringify(module)});
      const { createLogger } = await import(${JSON.stringify(logModule)});
      const log = createLogger({ service: 'child', level: 'silent' });
      const options = ${JSON.stringify({ ...options(), log: undefined })};
      const server = await startPostgres({ ...options, log });
      process.stdout.write(server.pid + '\\n');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
      cwd: new URL('../../..', import.meta.url),
    });
    const pid = await new Promise<number>((resolve) =>
      child.stdout.once('data', (text) => resolve(Number(text))),
    );
    child.kill('SIGKILL');
    server = await startPostgres(options());
    expect(server.pid).not.toBe(pid);
    const rows = await query<{ n: number }>(server.url('postgres'), 'select n from kept');
    expect(rows[0]?.n).toBe(7);
  }, 30_000);

  it('does not touch a directory with other contents', async () => {
    const dataDir = join(root, 'mine');
    mkdirSync(dataDir);
    writeFileSync(join(dataDir, 'letter.txt'), 'hello');
    await expect(startPostgres({ ...options(), dataDir })).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES_FAILED',
    });
    expect(existsSync(join(dataDir, 'letter.txt'))).toBe(true);
  }, 30_000);

  it('refuses a socket directory whose path is too long for a unix socket', async () => {
    await expect(
      startPostgres({ ...options(), socketDir: join(root, 'x'.repeat(90)) }),
    ).rejects.toMatchObject({ code: 'EMBEDDED_POSTGRES_SOCKET_PATH' });
  });
});

describe('the choice of a launcher', () => {
  it('names the remedy on a platform without a package', () => {
    expect(() => findBinaries('aix', 'ppc64')).toThrow(/DATABASE_URL/);
  });

  it('starts programs directly where nothing else is needed', () => {
    expect(chooseLauncher('darwin', { userId: 501, hasName: false })).toEqual({ prefix: [] });
  });
});
