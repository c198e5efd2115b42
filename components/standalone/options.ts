import { parseArgs } from 'node:util';
import { z } from 'zod';
import { AppError } from '#core/errors/errors.ts';

/** What `npm start --` accepts. */
export interface Options {
  readonly dataDir: string;
  /** Gateway port; 0 means any free one. */
  readonly port: number;
  /** Each component as a process of its own. */
  readonly processes: boolean;
}

const portOf = z.coerce.number().int().min(0).max(65_535);

export const usage = `npm start -- [--data DIR] [--port N] [--processes]

  --data DIR    where state lives (default ./.chancery)
  --port N      the gateway's port on 127.0.0.1 (default 8080; 0 takes any free one)
  --processes   run each component as a process of its own
`;

/** Reads the command line; throws `invalid` with one clear line for anything it does not know. */
export function parseOptions(args: readonly string[]): Options {
  const { values } = parse(args);
  const port = portOf.safeParse(values.port);
  if (!port.success) {
    throw new AppError(
      'invalid',
      'INVALID_REQUEST',
      `--port takes a number from 0 to 65535, not ${values.port}`,
    );
  }
  return { dataDir: values.data, port: port.data, processes: values.processes };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        data: { type: 'string', default: '.chancery' },
        port: { type: 'string', default: '8080' },
        processes: { type: 'boolean', default: false },
      },
    });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AppError('invalid', 'INVALID_REQUEST', reason, { cause });
  }
}
