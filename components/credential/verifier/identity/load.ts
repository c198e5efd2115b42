import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '#kit/config/config.ts';
import { readIdentity, type VerifierIdentity } from './identity.ts';

interface LoadOptions {
  /** A PEM file, or a directory with `tls.key` and `tls.crt`. */
  readonly path: string;
  readonly host: string;
  readonly mayBeSelfSigned: boolean;
  readonly nowMs: () => number;
}

/** The identity of the verifier in a file, read again when the file has changed. */
export class VerifierFile {
  readonly #options: LoadOptions;
  #text: string;
  #identity: VerifierIdentity;

  /** @throws ConfigError when the file cannot be used */
  constructor(options: LoadOptions) {
    this.#options = options;
    this.#text = readBundle(options.path);
    this.#identity = readIdentity(this.#text, { ...options, nowMs: options.nowMs() });
  }

  current(): VerifierIdentity {
    return this.#identity;
  }

  /** Reads the file again. @throws ConfigError when it cannot be used; the identity then stays as it is */
  reload(): void {
    const { nowMs, ...options } = this.#options;
    const text = readBundle(options.path);
    if (text === this.#text) return;
    this.#identity = readIdentity(text, { ...options, nowMs: nowMs() });
    this.#text = text;
  }
}

function readBundle(path: string): string {
  const [files, fault] = filesOf(path);
  if (fault !== undefined) throw new ConfigError([{ name: 'Haip__VerifierCertificate', message: fault }]);
  return files.map((file) => readFileSync(file, 'utf8')).join('\n');
}

/** The files of a path, or why it has none. */
function filesOf(path: string): readonly [readonly string[], string | undefined] {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [[], 'the file does not exist'];
  const files = found.isDirectory() ? [join(path, 'tls.key'), join(path, 'tls.crt')] : [path];
  const absent = files.find((file) => !existsSync(file));
  return [files, absent && `${absent} does not exist`];
}
