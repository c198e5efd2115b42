import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import pg from 'pg';
import { AppError } from '#core/errors/errors.ts';

const programs = '/usr/lib/postgresql/bin';

/** Where the server's socket lies: reachable inside the container only. */
export const socketFolder = '/tmp';

/** Recovery after a crash may take long; whoever watches the container decides when it took too long. */
const startDeadlineMs = 600_000;
const retryMs = 50;

export interface Account {
  readonly user: string;
  readonly database: string;
}

export const serverProgram = `${programs}/postgres`;

/** The words that start a server on a folder; `listen` is empty for one that no other machine may reach yet. */
export function serverWords(data: string, listen: string, more: readonly string[] = []): string[] {
  const settings = [
    `listen_addresses=${listen}`,
    `unix_socket_directories=${socketFolder}`,
    'unix_socket_permissions=0700',
    // /dev/shm of a container is small
    'dynamic_shared_memory_type=mmap',
  ];
  return ['-D', data, ...settings.flatMap((setting) => ['-c', setting]), ...more];
}

/** Runs initdb; the superuser may come in by the socket alone until the server's own rules are written. */
export async function runInitdb(data: string, user: string): Promise<void> {
  const words = [`--pgdata=${data}`, `--username=${user}`, '--auth-local=trust', '--auth-host=reject'];
  const locale = ['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'];
  try {
    await promisify(execFile)(`${programs}/initdb`, [...words, ...locale]);
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : 'unknown reason';
    throw new AppError('internal', 'POSTGRES_INITDB', `initdb failed: ${text}`, { cause });
  }
}

/** Lets `act` use a server that listens on its socket only, and stops that server. */
export async function withQuietServer(
  data: string,
  account: Account,
  act: (client: pg.Client) => Promise<void>,
): Promise<void> {
  // what fails here reaches the caller; the rest of its log would only tell of a start and a stop
  const words = serverWords(data, '', ['-c', 'log_min_messages=fatal']);
  const child = spawn(serverProgram, words, { stdio: ['ignore', 'inherit', 'inherit'] });
  const forward = () => child.kill('SIGINT');
  process.on('SIGTERM', forward);
  process.on('SIGINT', forward);
  const exit = once(child, 'exit');
  const ended = exit.then(([code, signal]) => {
    throw new AppError('internal', 'POSTGRES_ENDED', `PostgreSQL ended with ${String(code ?? signal)}`);
  });
  try {
    const client = await Promise.race([connect(account), ended]);
    try {
      await Promise.race([act(client), ended]);
    } finally {
      await client.end();
    }
  } finally {
    child.kill('SIGINT');
    await exit;
    process.off('SIGTERM', forward);
    process.off('SIGINT', forward);
  }
}

async function connect({ user, database }: Account): Promise<pg.Client> {
  const deadline = Date.now() + startDeadlineMs;
  for (;;) {
    const client = new pg.Client({ host: socketFolder, user, database });
    try {
      await client.connect();
      return client;
    } catch (cause) {
      if (Date.now() > deadline)
        throw new AppError('unavailable', 'POSTGRES_START', 'PostgreSQL does not answer', { cause });
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}
