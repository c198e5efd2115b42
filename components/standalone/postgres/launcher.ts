import { spawnSync } from 'node:child_process';

/** How root starts PostgreSQL: seen as an ordinary account in a user namespace, or really under another account. */
export type AsRoot = 'namespace' | 'other-user';

/** How PostgreSQL's programs run under an account they accept. */
export interface Launcher {
  /** Words put in front of a program and its arguments. */
  readonly prefix: readonly string[];
  /** The account and group PostgreSQL runs under where that is not the caller's. */
  readonly account?: number;
}

/** PostgreSQL gets a small, fixed environment: the caller's PG* variables and locale never reach it. */
export const LAUNCH_ENVIRONMENT: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  TZ: 'UTC',
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};

// `nobody`: initdb wants an account that has a name, and this one has it on every system with glibc
const NOBODY = 65_534;
const USER_NAMESPACE = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`];
// PostgreSQL stops cleanly when whoever started it dies, even by SIGKILL
const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'INT'];

/**
 * Chooses how PostgreSQL is started on this machine. PostgreSQL refuses to run as root; in a user namespace that maps
 * root to an ordinary account it sees no root, and root's files stay readable. Where the kernel gives no namespaces,
 * PostgreSQL runs under another account. Returns undefined when the caller is root and neither can be had, or when
 * the way asked for by `asRoot` cannot.
 */
export function chooseLauncher(
  platform: string,
  userId: number | undefined,
  asRoot?: AsRoot,
): Launcher | undefined {
  if (platform !== 'linux') return { prefix: [] };
  const tail = works({ prefix: DIE_WITH_PARENT }, ['true']) ? DIE_WITH_PARENT : [];
  if (userId !== 0) return { prefix: tail };
  const ways: Readonly<Record<AsRoot, Launcher>> = {
    namespace: { prefix: [...USER_NAMESPACE, ...tail] },
    'other-user': { prefix: tail, account: NOBODY },
  };
  const allowed: readonly AsRoot[] = asRoot === undefined ? ['namespace', 'other-user'] : [asRoot];
  return allowed.map((way) => ways[way]).find((way) => works(way, ['true']));
}

/** Tells whether a command ends well when it is started this way. */
export function works(launcher: Launcher, words: readonly string[]): boolean {
  const [command = '', ...rest] = [...launcher.prefix, ...words];
  const account = accountOf(launcher);
  return spawnSync(command, rest, { ...account, env: LAUNCH_ENVIRONMENT, stdio: 'ignore' }).status === 0;
}

/** What `spawn` is told so that a program runs under the launcher's account. */
export function accountOf({ account }: Launcher): { readonly uid?: number; readonly gid?: number } {
  return account === undefined ? {} : { uid: account, gid: account };
}

/** A directory of PostgreSQL's: the name it is told, and what `spawn` is told with it. */
export interface Seat {
  readonly name: string;
  readonly spawn: { readonly cwd?: string; readonly uid?: number; readonly gid?: number };
}

/**
 * Seats a program of PostgreSQL in its data directory. Another account cannot walk the caller's private directories to
 * it, so it starts there and reaches it as its working directory, which the kernel resolves without the way to it.
 */
export function seatIn(launcher: Launcher, directory: string): Seat {
  if (launcher.account === undefined) return { name: directory, spawn: {} };
  return { name: '/proc/self/cwd', spawn: { cwd: directory, ...accountOf(launcher) } };
}
