import { parseArgs } from 'node:util';
import { isInstanceId } from '#core/blueprint/steps/routing.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { type AppError, isAppError } from '#core/errors/errors.ts';
import { findDocketHash } from '#core/ledger/register-id.ts';
import { provenText, refusedText, verifyDisclosureFile } from './disclosure.ts';
import { cliError } from './errors.ts';
import { findPin, InstanceReader } from './instance.ts';
import { instanceText } from './instance-text.ts';
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
chancery instance FILE ID [--genesis HASH]
chancery disclosure FILE [--key KEY]

verify      checks the export of a register (GET /api/registers/{id}/export), offline: every hash, signature and
            certificate, the rules that its control transactions decided, and the signed checkpoint. FILE - is standard
            input. --genesis demands that docket 0 has this hash. Without it a file can only be judged by itself: compare
            the genesis that is printed with one that you know from elsewhere.

instance    does the same, checks each step of the workflow instance ID against the definition that it is pinned to, and
            prints its path. Reads FILE twice.

disclosure  checks a file in which a recipient shows one group of an action, offline: its commitment, the payload and the
            signatures of the transaction, its place in the register, and the signed checkpoint. It prints what was
            shown, and to which wallets it was addressed. --key demands that this key signed the checkpoint
            (GET /api/registers/{id}/checkpoint/key).

Ends with 0 when everything verifies, with 1 when something does not (the first place is named), with 2 when the file
cannot be read or is no export, has no such instance, or the command is wrong.
`;

const COMMANDS: readonly string[] = ['verify', 'instance', 'disclosure'];

const options = {
  genesis: { type: 'string' },
  key: { type: 'string' },
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

async function verify(path: string, genesisHash: string | undefined, surface: Surface): Promise<number> {
  const verdict = await verifyExport(surface.read(path), surface.verifier, { genesisHash });
  if (verdict.holds) surface.print(summaryText(verdict.summary));
  else surface.complain(faultText(verdict.fault));
  return verdict.holds ? 0 : 1;
}

/** The definition is sealed before the step that names it, so it is kept only when its id is known beforehand. */
async function readInstance(
  path: string,
  id: string,
  genesisHash: string | undefined,
  surface: Surface,
): Promise<number> {
  if (path === '-') throw usage('instance reads FILE twice, which standard input does not allow');
  const reader = new InstanceReader(id, await findPin(surface.read(path), id));
  const observe = reader.take.bind(reader);
  const verdict = await verifyExport(surface.read(path), surface.verifier, { genesisHash, observe });
  if (!verdict.holds) {
    surface.complain(faultText(verdict.fault));
    return 1;
  }
  surface.print(`${summaryText(verdict.summary)}${instanceText(reader.finish(verdict.summary.sealedAt))}`);
  return 0;
}

function instanceIdOf(text: string | undefined): string {
  if (text === undefined) throw usage('instance needs a FILE and an ID');
  if (!isInstanceId(text)) throw usage(`${text} is no id of an instance`);
  return text;
}

async function disclosure(path: string, key: string | undefined, surface: Surface): Promise<number> {
  const verdict = await verifyDisclosureFile(surface.read(path), surface.verifier, key);
  if ('proven' in verdict) surface.print(provenText(verdict.proven));
  else surface.complain(refusedText(verdict));
  return 'proven' in verdict ? 0 : 1;
}

type Options = ReturnType<typeof parse>['values'];

async function runCommand(
  [command = '', path, ...surplus]: readonly string[],
  { genesis, key }: Pick<Options, 'genesis' | 'key'>,
  surface: Surface,
): Promise<number> {
  if (!COMMANDS.includes(command)) throw usage(`${command} is no command`);
  if (path === undefined) throw usage(`${command} needs a FILE`);
  const id = command === 'instance' ? instanceIdOf(surplus.shift()) : undefined;
  const isDisclosure = command === 'disclosure';
  if ((isDisclosure ? genesis : key) !== undefined) surplus.push(isDisclosure ? '--genesis' : '--key');
  if (surplus.length > 0) throw usage(`${surplus.join(' ')} is not understood`);
  if (isDisclosure) return disclosure(path, key, surface);
  const genesisHash = genesisOf(genesis);
  return id === undefined ? verify(path, genesisHash, surface) : readInstance(path, id, genesisHash, surface);
}

/** Runs one command; resolves to the exit code. */
export async function run(args: readonly string[], surface: Surface): Promise<number> {
  try {
    const { values, positionals } = parse(args);
    if (values.help || positionals.length === 0) {
      surface.print(USAGE);
      return values.help ? 0 : 2;
    }
    return await runCommand(positionals, values, surface);
  } catch (error) {
    if (!isAppError(error)) throw error;
    surface.complain(`${error.message}\n`);
    return 2;
  }
}
