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

/** The identity of the verifier in a file, read again when the file has changed. */
export class VerifierFile {
  readonly #options: LoadOptions;
  #bytes: Buffer;
  #identity: VerifierIdentity;

  /** @throws ConfigError when the file cannot be used */
  constructor(options: LoadOptions) {
    this.#options = options;
    this.#bytes = readFiles(options.path);
    this.#identity = readIdentity(this.#bytes, { ...options, nowMs: options.nowMs() });
  }

  current(): VerifierIdentity {
    return this.#identity;
  }

  /** Reads the file again. @throws ConfigError when it cannot be used; the identity then stays as it is */
  reload(): void {
    const { nowMs, ...options } = this.#options;
    const bytes = readFiles(options.path);
    if (bytes.equals(this.#bytes)) return;
    this.#identity = readIdentity(bytes, { ...options, nowMs: nowMs() });
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
