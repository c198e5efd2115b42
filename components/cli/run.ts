import { parseArgs } from 'node:util';
import type { Verifier } from '#core/crypto/verify.ts';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { findDocketHash } from '#core/ledger/register-id.ts';
import { cliError } from './errors.ts';
import { faultText, summaryText, verifyExport } from './verify.ts';

/** Input and output of the program. */
interface Surface {
  readonly verifier: Verifier;
  /** Bytes of a file; `-` is standard input. Reading throws AppError not_found FILE_UNREADABLE. */
  read(path: string): AsyncIterable<Uint8Array>;
  print(text: string): void;
  complain(text: string): void;
}

export const USAGE = `chancery verify FILE [--genesis HASH]

verify  checks the export of a register (GET /api/registers/{id}/export), offline: every hash, signature and certificate,
        the rules that its control transactions decided, and the signed checkpoint. FILE - is standard input.
        --genesis demands that docket 0 has this hash. Without it a file can only be judged by itself: compare the
        genesis that is printed with one that you know from elsewhere.

Ends with 0 when everything verifies, with 1 when something does not (the first place is named), with 2 when the file
cannot be read or is no export, or the command is wrong.
`;

const options = {
  genesis: { type: 'string' },
  help: { type: 'boolean', short: 'h', default: false },
} as const;

function usage(problem: string, cause?: unknown): AppError {
  const text = `${problem}; chancery --help lists the commands`;
  return cliError('INVALID_ARGUMENTS', text, { cause });
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw usage(error instanceof Error ? error.message : 'The arguments cannot be read', error);
  }
}

function genesisOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  return findDocketHash(text) ?? refuseGenesis(text);
}

function refuseGenesis(text: string): never {
  throw usage(`${text} is no hash of a docket`);
}

async function verify(path: string, genesis: string | undefined, surface: Surface): Promise<number> {
  const verdict = await verifyExport(surface.read(path), surface.verifier, genesisOf(genesis));
  if (verdict.holds) surface.print(summaryText(verdict.summary));
  else surface.complain(faultText(verdict.fault));
  return verdict.holds ? 0 : 1;
}

/** Runs one command; resolves to the exit code. */
export async function run(args: readonly string[], surface: Surface): Promise<number> {
  try {
    const { values, positionals } = parse(args);
    const [command, path, ...surplus] = positionals;
    if (values.help || command === undefined) {
      surface.print(USAGE);
      return values.help ? 0 : 2;
    }
    if (command !== 'verify') throw usage(`${command} is no command`);
    if (path === undefined) throw usage('verify needs a FILE');
    if (surplus.length > 0) throw usage(`${surplus.join(' ')} is not understood`);
    return await verify(path, values.genesis, surface);
  } catch (error) {
    if (!isAppError(error)) throw error;
    surface.complain(`${error.message}\n`);
    return 2;
  }
}
