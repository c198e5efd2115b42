import { spawnSync } from 'node:child_process';
import { userInfo } from 'node:os';

/** The account of this process, as far as the choice of a launcher depends on it. */
export interface Account {
  /** Undefined on systems without user ids. */
  readonly userId: number | undefined;
  /** Whether the account has an entry in the password database; initdb ends without one. */
  readonly hasName: boolean;
}

/** Reads the account of this process. Containers with arbitrary user ids have no entry for theirs. */
export function currentAccount(): Account {
  return { userId: process.getuid?.(), hasName: hasName() };
}

function hasName(): boolean {
  try {
    return userInfo().username !== '';
  } catch {
    // userInfo throws where the password database has no entry
    return false;
  }
}

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
 * PostgreSQL runs under another account. An account without a name needs the namespace too, since initdb looks its name
 * up. Returns undefined when neither can be had, or when the way asked for by `asRoot` cannot.
 */
export function chooseLauncher(
  platform: string,
  { userId, hasName }: Account,
  asRoot?: AsRoot,
): Launcher | undefined {
  if (platform !== 'linux') return { prefix: [] };
  const tail = works({ prefix: DIE_WITH_PARENT }, ['true']) ? DIE_WITH_PARENT : [];
  if (userId !== 0 && hasName) return { prefix: tail };
  const ways: Readonly<Record<AsRoot, Launcher>> = {
    namespace: { prefix: [...USER_NAMESPACE, ...tail] },
    'other-user': { prefix: tail, account: NOBODY },
  };
  const allowed = userId === 0 ? allowedAsRoot(asRoot) : (['namespace'] as const);
  return allowed.map((way) => ways[way]).find((way) => works(way, ['true']));
}

function allowedAsRoot(asRoot: AsRoot | undefined): readonly AsRoot[] {
  return asRoot === undefined ? ['namespace', 'other-user'] : [asRoot];
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
