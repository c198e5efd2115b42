import { spawnSync } from 'node:child_process';
import { userInfo } from 'node:os';

/** The facts about this process's account that the choice of a launcher depends on. */
export interface Account {
  /** Undefined on systems without user ids. */
  readonly userId: number | undefined;
  /** Whether the account has an entry in the password database; initdb fails without one. */
  readonly hasName: boolean;
}

/** Reads the account of this process. Accounts with arbitrary user ids in containers have no entry. */
export function currentAccount(): Account {
  return { userId: process.getuid?.(), hasName: hasName() };
}

function hasName(): boolean {
  try {
    return userInfo().username !== '';
  } catch {
    // userInfo throws where the password database has no entry.
    return false;
  }
}

/** How root starts PostgreSQL: as an ordinary account in a user namespace, or under another account. */
export type AsRoot = 'namespace' | 'other-user';

/** Runs PostgreSQL's programs under an account that they accept. */
export interface Launcher {
  /** Words before a program and its arguments. */
  readonly prefix: readonly string[];
  /** The account and group that PostgreSQL runs under, when it is not the caller's. */
  readonly account?: number;
}

/** PostgreSQL gets a small, fixed environment, so that the caller's PG* variables and locale have no effect. */
export const LAUNCH_ENVIRONMENT: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  TZ: 'UTC',
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
};

// `nobody`: initdb requires an account with a name, and this one has it on every system with glibc.
const NOBODY = 65_534;
const USER_NAMESPACE = ['unshare', '--user', `--map-user=${NOBODY}`, `--map-group=${NOBODY}`];
// PostgreSQL stops cleanly when its parent dies, even by SIGKILL.
const DIE_WITH_PARENT = ['setpriv', '--pdeathsig', 'INT'];

/**
 * Chooses how PostgreSQL is started on this machine. PostgreSQL refuses to run as root. In a user namespace that maps
 * root to an ordinary account it does not see root, and root's files stay readable. Where the kernel allows no
 * namespaces, PostgreSQL runs under another account. An account without a name also needs the namespace, because initdb
 * looks its name up. Returns undefined when neither is possible, or when the way that `asRoot` requests is not.
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

/** Whether a command succeeds when it is started this way. */
export function works(launcher: Launcher, words: readonly string[]): boolean {
  const [command = '', ...rest] = [...launcher.prefix, ...words];
  const account = accountOf(launcher);
  return spawnSync(command, rest, { ...account, env: LAUNCH_ENVIRONMENT, stdio: 'ignore' }).status === 0;
}

/** Options of `spawn` for the launcher's account. */
function accountOf({ account }: Launcher): { readonly uid?: number; readonly gid?: number } {
  return account === undefined ? {} : { uid: account, gid: account };
}

/** A data directory: its name for a program of PostgreSQL, and the options of `spawn` that go with it. */
interface DirectoryAccess {
  readonly name: string;
  readonly spawn: { readonly cwd?: string; readonly uid?: number; readonly gid?: number };
}

/**
 * Gives a program of PostgreSQL access to its data directory. Another account cannot traverse the caller's private
 * directories, so the program starts in the data directory and addresses it as its working directory, which the kernel
 * resolves without the path to it.
 */
export function accessTo(launcher: Launcher, directory: string): DirectoryAccess {
  if (launcher.account === undefined) return { name: directory, spawn: {} };
  return { name: '/proc/self/cwd', spawn: { cwd: directory, ...accountOf(launcher) } };
}
