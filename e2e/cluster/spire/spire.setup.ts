import { must } from '../kubectl.ts';
import { archives, buildSpire } from './build.ts';

/**
 * Builds the programs of SPIRE and imports them by the command in LOAD; without LOAD they are there already.
 * @throws NotToBeHad where they cannot be had: then nothing of SPIRE is shown
 */
export async function setup(): Promise<void> {
  const [program = '', ...args] = (process.env['LOAD'] ?? '').split(' ');
  if (program === '') return;
  await buildSpire((line) => process.stdout.write(`${line}\n`));
  await must(program, [...args, ...archives], { timeoutMs: 300_000 });
}
