import { spawnSync } from 'node:child_process';

/** A command line that runs PostgreSQL's programs under an account they accept. */
export interface Launcher {
  /** Words put in front of a program and its arguments. */
  readonly prefix: readonly string[];
}

/** PostgreSQL gets a small, fixed environment: the caller's PG* variables and locale never reach it. */
export const LAUNCH_ENVIRONMENT: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  TZ: 'UTC',
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};

const USER_NAMESPACE = ['unshare', '--user', '--map-user=1000', '--map-group=1000'];
// PostgreSQL stops cleanly when whoever started it dies, even by SIGKILL
const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'INT'];

/**
 * Chooses how PostgreSQL is started on this machine. PostgreSQL refuses to run as root; in a user namespace that maps
 * root to an ordinary account it sees no root, and root's files stay readable. Returns undefined when the caller is
 * root and the kernel gives no user namespaces.
 */
export function chooseLauncher(platform: string, userId: number | undefined): Launcher | undefined {
  if (platform !== 'linux') return { prefix: [] };
  const tail = works([...DIE_WITH_PARENT, 'true']) ? DIE_WITH_PARENT : [];
  if (userId !== 0) return { prefix: tail };
  return works([...USER_NAMESPACE, 'true']) ? { prefix: [...USER_NAMESPACE, ...tail] } : undefined;
}

function works(words: readonly string[]): boolean {
  const [command = '', ...rest] = words;
  return spawnSync(command, rest, { env: LAUNCH_ENVIRONMENT, stdio: 'ignore' }).status === 0;
}
