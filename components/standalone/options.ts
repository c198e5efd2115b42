import { parseArgs } from 'node:util';
import { z } from 'zod';
import { endpoint } from '#kit/config/config.ts';
import { localError } from './errors.ts';

/** Options of `npm start --`. */
export interface Options {
  readonly dataDir: string;
  /** Gateway port; 0 means any free one. */
  readonly port: number;
  /** Runs each component as a process of its own. */
  readonly processes: boolean;
  /** Number of validators, 1 to 7. When absent, the number stored in the data directory, or one. */
  readonly validators: number | undefined;
  /** Instead of a start: the running Chancery of this directory is requested to restart this validator's process. */
  readonly again: string | undefined;
  /** Instead of a start: the running Chancery of this directory makes a link that sets a new password. */
  readonly recover: string | undefined;
}

const portOf = z.coerce.number().int().min(0).max(65_535);
const validatorsOf = z.coerce.number().int().min(1).max(7);

export const usage = `npm start -- [--data DIR] [--port N] [--validators N] [--processes]
npm start -- [--data DIR] --again NAME
npm start -- [--data DIR] --recover EMAIL

  --data DIR       where state lives (default ./.chancery)
  --port N         the gateway's port on 127.0.0.1 (default 8080; 0 takes any free one)
  --validators N   how many validators, 1 to 7 (default 1); the first start of a directory fixes it
  --processes      run each component as a process of its own
  --again NAME     start the ended validator NAME of a running Chancery again (validator-0, ...)
  --recover EMAIL  print a link that sets a new password for an account of a running Chancery
`;

/** Parses the command line; throws `invalid` with one clear line for any unknown option. */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parse(args);
  const port = portOf.safeParse(values.port);
  if (!port.success) {
    throw localError('INVALID_REQUEST', `--port takes a number from 0 to 65535, not ${values.port}`);
  }
  return {
    dataDir: values.data,
    port: port.data,
    processes: values.processes,
    validators: parseValidators(values.validators),
    again: values.again,
    recover: values.recover,
  };
}

function parseValidators(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const validators = validatorsOf.safeParse(text);
  if (validators.success && text !== '') return validators.data;
  throw localError('INVALID_REQUEST', `--validators takes a number from 1 to 7, not ${text}`);
}

/**
 * Addresses that validators announce instead of their own (`CHANCERY_VALIDATOR_ENDPOINTS`), separated by commas.
 * @throws AppError invalid INVALID_REQUEST for an entry that is no `host:port`
 */
export function parseEndpoints(text: string): readonly string[] {
  const endpoints = text.split(',').map((one) => one.trim());
  const wrong = endpoints.find((one) => !endpoint.safeParse(one).success);
  if (wrong === undefined) return endpoints;
  throw localError(
    'INVALID_REQUEST',
    `CHANCERY_VALIDATOR_ENDPOINTS takes host:port, separated by commas, not ${wrong || 'nothing'}`,
  );
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        data: { type: 'string', default: '.chancery' },
        port: { type: 'string', default: '8080' },
        processes: { type: 'boolean', default: false },
        validators: { type: 'string' },
        again: { type: 'string' },
        recover: { type: 'string' },
      },
    });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw localError('INVALID_REQUEST', reason, { cause });
  }
}
