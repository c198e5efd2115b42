import { must } from '../kubectl.ts';
import { archives, buildSpire } from './build.ts';

/**
 * Builds the programs of SPIRE and imports them with the command in LOAD. Without LOAD they must exist.
 * @throws NotToBeHad when they cannot be built; the SPIRE tests then fail
 */
export async function setup(): Promise<void> {
  const [program = '', ...args] = (process.env['LOAD'] ?? '').split(' ');
  if (program === '') return;
  await buildSpire((line) => process.stdout.write(`${line}\n`));
  await must(program, [...args, ...archives], { timeoutMs: 300_000 });
}
