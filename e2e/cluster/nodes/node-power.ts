import { must } from '../kubectl.ts';

/** What can happen to a node: its machine loses power and comes back, its cable is pulled and put back. */
type Act = 'kill' | 'start' | 'cut' | 'heal';

/**
 * Does something to a node by the command in NODE_POWER, which takes the act and the number that the node's name ends with, as in
 * NODE_POWER="cluster node".
 * @throws Error without NODE_POWER, or when the command fails
 */
export async function power(act: Act, node: string): Promise<void> {
  const [program = '', ...args] = (process.env['NODE_POWER'] ?? '').split(' ');
  if (program === '')
    throw new Error('NODE_POWER names no command that kills, starts, cuts and heals a node');
  const number = /\d+$/.exec(node)?.[0];
  if (number === undefined) throw new Error(`the name ${node} ends with no number`);
  await must(program, [...args, act, number], { timeoutMs: 120_000 });
}
