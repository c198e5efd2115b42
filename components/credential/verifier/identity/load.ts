import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fault } from './bundle.ts';
import { readIdentity, type VerifierIdentity } from './identity.ts';

interface LoadOptions {
  /** A PEM or PFX file, or a directory with `tls.key` and `tls.crt`. */
  readonly path: string;
  readonly host: string;
  /** Of the file; undefined where it has none. */
  readonly password: string | undefined;
  readonly mayBeSelfSigned: boolean;
  readonly nowMs: () => number;
}

/**
 * The identity of the verifier in a file, read again when the file has changed. The one before stays, for requests whose
 * client id is the hash of its certificate.
 */
export class VerifierFile {
  readonly #options: LoadOptions;
  #bytes: Buffer;
  #identities: readonly [VerifierIdentity, ...VerifierIdentity[]];

  /** @throws ConfigError when the file cannot be used */
  constructor(options: LoadOptions) {
    this.#options = options;
    this.#bytes = readFiles(options.path);
    this.#identities = [readIdentity(this.#bytes, { ...options, nowMs: options.nowMs() })];
  }

  /** The present identity, and the one before it. */
  identities(): readonly [VerifierIdentity, ...VerifierIdentity[]] {
    return this.#identities;
  }

  /** Reads the file again. @throws ConfigError when it cannot be used; the identities then stay as they are */
  reload(): void {
    const { nowMs, ...options } = this.#options;
    const bytes = readFiles(options.path);
    if (bytes.equals(this.#bytes)) return;
    this.#identities = [readIdentity(bytes, { ...options, nowMs: nowMs() }), this.#identities[0]];
    this.#bytes = bytes;
  }
}

function readFiles(path: string): Buffer {
  const [files, problem] = filesOf(path);
  if (problem !== undefined) throw fault(problem);
  const [first = Buffer.of(), ...others] = files.map((file) => readFileSync(file));
  return Buffer.concat([first, ...others.flatMap((other) => [Buffer.from('\n'), other])]);
}

/** The files of a path, or why it has none. */
function filesOf(path: string): readonly [readonly string[], string | undefined] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [[], 'the file does not exist'];
  const files = found.isDirectory() ? [join(path, 'tls.key'), join(path, 'tls.crt')] : [path];
  const absent = files.find((file) => !existsSync(file));
  return [files, absent && `${absent} does not exist`];
}
