import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { localError } from '../errors.ts';

/** The data directory of local mode, which survives restarts, and the short directory of its sockets. */
export interface StateDirectory {
  readonly root: string;
  readonly postgres: string;
  readonly issuer: string;
  readonly secrets: string;
  readonly serviceSecrets: string;
  readonly logs: string;
  readonly validators: string;
  /** Short (unix socket paths end at 107 bytes) and readable by this user only. */
  readonly sockets: string;
  readonly localJson: string;
}

/** Creates the directory tree, private to the user. */
export function openStateDirectory(dataDir: string): StateDirectory {
  const path = resolve(dataDir);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const root = realpathSync(path);
  const digest = createHash('sha256').update(root).digest('hex').slice(0, 12);
  const directory: StateDirectory = {
    root,
    postgres: join(root, 'postgres'),
    issuer: join(root, 'issuer'),
    secrets: join(root, 'secrets'),
    serviceSecrets: join(root, 'secrets', 'services'),
    logs: join(root, 'logs'),
    validators: join(root, 'validators'),
    sockets: join('/tmp', `chancery-${process.getuid?.() ?? userInfo().uid}-${digest}`),
    localJson: join(root, 'local.json'),
  };
  const { issuer, secrets, serviceSecrets, logs, validators, sockets } = directory;
  for (const folder of [issuer, secrets, serviceSecrets, logs, validators, sockets]) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
  }
  return directory;
}

/** Writes a file that only its owner can read, atomically. */
export function writePrivate(path: string, content: string | Uint8Array): void {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, path);
}

function keep(path: string, make: () => string | Uint8Array): string {
  if (!existsSync(path)) {
    writePrivate(path, make());
  }
  return path;
}

/** Files of generated secrets; an existing one is never replaced. */
interface SecretFiles {
  readonly adminPassword: string;
  readonly protectionKey: string;
  readonly keyEncryptionKey: string;
  readonly operationsKey: string;
}

/** Creates the secrets of an installation once: a password of 24 characters, keys of 32 bytes, one secret a service. */
export function keepSecrets(directory: StateDirectory, clientIds: readonly string[]): SecretFiles {
  for (const clientId of clientIds) {
    keep(join(directory.serviceSecrets, clientId), () => randomBytes(32).toString('base64url'));
  }
  return {
    adminPassword: keep(join(directory.secrets, 'admin-password'), () =>
      randomBytes(18).toString('base64url'),
    ),
    protectionKey: keep(join(directory.secrets, 'protection-key'), () => randomBytes(32)),
    keyEncryptionKey: keep(join(directory.secrets, 'key-encryption-key'), () => randomBytes(32)),
    operationsKey: keep(join(directory.secrets, 'operations-key'), () => randomBytes(32)),
  };
}

/** The installation's name, fixed at the first start of a directory. */
export function keepInstallation(directory: StateDirectory, fallback: string): string {
  return readFileSync(
    keep(join(directory.root, 'installation'), () => fallback),
    'utf8',
  ).trim();
}

const countFile = (directory: StateDirectory): string => join(directory.root, 'validators.count');

/** The number of validators of a directory; undefined before its first start. */
function storedValidators(directory: StateDirectory): number | undefined {
  if (existsSync(countFile(directory))) return Number(readFileSync(countFile(directory), 'utf8'));
  // A directory from before the number could be chosen.
  return existsSync(join(directory.validators, 'validator-0')) ? 1 : undefined;
}

/**
 * The number of validators to start with: the stored number or, at the first start, the requested one, else one.
 * @throws AppError conflict VALIDATORS_FIXED when another number is requested
 */
export function chooseValidators(directory: StateDirectory, asked: number | undefined): number {
  const stored = storedValidators(directory);
  if (stored === undefined || asked === undefined || asked === stored) return stored ?? asked ?? 1;
  const plural = stored === 1 ? 'validator' : 'validators';
  throw localError(
    'VALIDATORS_FIXED',
    `${directory.root} has ${stored} ${plural} since its first start; leave --validators out, or pass another --data DIR`,
  );
}

/** Stores the number of validators of the directory. */
export function keepValidators(directory: StateDirectory, count: number): void {
  keep(countFile(directory), () => `${count}\n`);
}
